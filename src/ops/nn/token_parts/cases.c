// In a group of one rank; parts are tried in tests/ops/test_token_parts.c.
#include "ops/cases.h"
#include "ops/nn/token_parts/token_parts.h"

#include <string.h>

extern const tr_case_list tr__cases_token_parts;

static const struct {
    const tr_op *op;
    bool shared;
    tr_shape shape;
} cases[] = {
    {&tr__op_all_gather, true, {3, {2, 7, 33}}},
    {&tr__op_all_gather, false, {2, {3, 5}}},
    {&tr__op_reduce_scatter, false, {2, {3, 65}}},
    {&tr__op_own_part, false, {3, {2, 3, 17}}},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = tr__case_of_moves("token_parts", cases[index].op, cases[index].shape);
    const tr_token_parts_attr attr = {.shared = cases[index].shared, .ranks = 1};
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_token_parts = {"token_parts", get};
