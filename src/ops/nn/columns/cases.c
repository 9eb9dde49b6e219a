#include "ops/cases.h"
#include "ops/nn/columns/columns.h"

#include <string.h>

extern const tr_case_list tr__cases_columns;

static const struct {
    int64_t rows, width;
    tr_columns_attr attr;
    double gradient_tolerance;
} cases[] = {
    {1, 1, {0, 1, 2, 0}, 1e-3},        {3, 5, {0, 5, 0.5f, 0}, 1e-3},
    {3, 7, {2, 3, -1.5f, 0}, 1e-3},    {2, 9, {6, 3, 4, 0}, 1e-3},
    {17, 63, {31, 17, 0.25f, 0}, 0},   {5, 300, {0, 257, 2, 0}, 0},
    {257, 96, {64, 32, 0.125f, 0}, 0},
};

static const int64_t joined[][1 + TR_JOINED_MAX] = {
    {1, 1, 1},
    {3, 5, 2, 1},
    {5, 17, 31, 3, 9},
    {33, 300, 64},
};

static bool get_added(int index, tr_case *out) {
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

static bool get_taken(int index, tr_case *out) {
    *out = (tr_case){
        .name = "take columns",
        .op = &tr__op_take_columns,
        .in_count = 1,
        .in = {{.desc = {TR_F32, TR_SHAPE2(cases[index].rows, cases[index].width)}}},
        .tolerance = 1e-6,
        .half_tolerance = 1,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &cases[index].attr, sizeof cases[index].attr);
    return true;
}

static bool get_joined(int index, tr_case *out) {
    const int64_t *sizes = joined[index];
    *out = (tr_case){
        .name = "join columns",
        .op = &tr__op_join_columns,
        .tolerance = 1e-6,
        .half_tolerance = 1,
        .gradient_tolerance = sizes[0] < 5 ? 1e-3 : 0,
    };
    for (int i = 0; i < TR_JOINED_MAX && sizes[1 + i] > 0; i++) {
        out->in[out->in_count++].desc =
            (tr_tensor_desc){TR_F32, TR_SHAPE2(sizes[0], sizes[1 + i])};
    }
    return true;
}

static bool get(int index, tr_case *out) {
    int count = (int)(sizeof cases / sizeof cases[0]);
    int joins = (int)(sizeof joined / sizeof joined[0]);
    if (index < 0 || index >= 2 * count + joins) {
        return false;
    }
    return index < count       ? get_added(index, out)
           : index < 2 * count ? get_taken(index - count, out)
                               : get_joined(index - 2 * count, out);
}

const tr_case_list tr__cases_columns = {"columns", get};
