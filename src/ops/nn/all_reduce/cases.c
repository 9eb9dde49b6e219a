// In a group of one rank.
#include "ops/cases.h"
#include "ops/nn/all_reduce/all_reduce.h"

extern const tr_case_list tr__cases_all_reduce;

static const struct {
    const tr_op *op;
    tr_shape shape;
} cases[] = {
    {&tr__op_all_reduce, {1, {5}}},
    {&tr__op_all_reduce, {3, {2, 7, 33}}},
    {&tr__op_all_reduce_gradient, {2, {3, 65}}},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = tr__case_of_moves("all_reduce", cases[index].op, cases[index].shape);
    return true;
}

const tr_case_list tr__cases_all_reduce = {"all_reduce", get};
