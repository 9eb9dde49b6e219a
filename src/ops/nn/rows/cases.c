#include "ops/cases.h"
#include "ops/nn/rows/rows.h"

#include <string.h>

extern const tr_case_list tr__cases_rows;

static const struct {
    const tr_op *op;
    tr_shape shape;
    tr_rows_attr rows;
} cases[] = {
    {&tr__op_take_rows, {3, {2, 7, 33}}, {0, 3, 7}},
    {&tr__op_take_rows, {3, {3, 5, 17}}, {4, 1, 5}},
    {&tr__op_take_rows, {2, {1, 9}}, {2, 7, 9}},
    {&tr__op_put_rows, {3, {2, 3, 33}}, {2, 3, 7}},
    {&tr__op_put_rows, {3, {3, 1, 17}}, {0, 1, 5}},
    {&tr__op_put_rows, {2, {2, 9}}, {0, 9, 9}},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = tr__case_of_moves("rows", cases[index].op, cases[index].shape);
    memcpy(out->attr, &cases[index].rows, sizeof cases[index].rows);
    return true;
}

const tr_case_list tr__cases_rows = {"rows", get};
