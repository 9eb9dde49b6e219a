#include "ops/cases.h"
#include "ops/nn/columns/columns.h"

#include <string.h>

extern const tr_case_list tr__cases_columns;

static const struct {
    int64_t rows, width;
    tr_columns_attr attr;
    double gradient_tolerance;
} cases[] = {
    {1, 1, {0, 1, 2}, 1e-3},        {3, 5, {0, 5, 0.5f}, 1e-3},
    {3, 7, {2, 3, -1.5f}, 1e-3},    {2, 9, {6, 3, 4}, 1e-3},
    {17, 63, {31, 17, 0.25f}, 0},   {5, 300, {0, 257, 2}, 0},
    {257, 96, {64, 32, 0.125f}, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    int64_t rows = cases[index].rows;
    *out = (tr_case){
        .name = "add columns",
        .op = &tr__op_add_columns,
        .in_count = 2,
        .in = {{.desc = {TR_F32, TR_SHAPE2(rows, cases[index].width)}},
               {.desc = {TR_F32, TR_SHAPE2(rows, cases[index].attr.count)}}},
        .tolerance = 1e-6,
        .half_tolerance = 1,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &cases[index].attr, sizeof cases[index].attr);
    return true;
}

const tr_case_list tr__cases_columns = {"columns", get};
