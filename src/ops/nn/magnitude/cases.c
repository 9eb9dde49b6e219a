#include "ops/cases.h"
#include "ops/nn/magnitude/magnitude.h"

#include <string.h>

extern const tr_case_list tr__cases_magnitude;

static const struct {
    int64_t rows, width;
    tr_magnitude_attr attr;
    double gradient_tolerance;
} cases[] = {
    {1, 1, {1, {0}, {1}}, 1e-3},
    {3, 7, {1, {2}, {3}}, 1e-3},
    {5, 12, {1, {0}, {12}}, 1e-3},
    {2, 9, {2, {0, 4}, {3, 5}}, 1e-3},
    {3, 11, {3, {0, 4, 7}, {4, 3, 2}}, 1e-3},
    {17, 96, {3, {0, 64, 80}, {64, 16, 16}}, 0},
    {257, 130, {2, {1, 66}, {65, 64}}, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    const tr_magnitude_attr *attr = &cases[index].attr;
    int64_t rows = cases[index].rows, width = cases[index].width;
    *out = (tr_case){
        .name = "magnitude",
        .op = &tr__op_magnitude,
        .in_count = 1 + 2 * attr->layers,
        .in = {{.desc = {TR_F32, TR_SHAPE2(rows, width)}}},
        .tolerance = 1e-6,
        .half_tolerance = 1,
        .always_f32 = TR_MAGNITUDE_PLAIN,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    for (int i = 0; i < attr->layers; i++) {
        tr_tensor_desc one = {TR_F32, TR_SHAPE1(attr->count[i])};
        out->in[1 + 2 * i] = (tr_case_input){.desc = one};
        out->in[2 + 2 * i] = (tr_case_input){.desc = one, .fill = TR_FILL_POSITIVE};
    }
    memcpy(out->attr, attr, sizeof *attr);
    return true;
}

const tr_case_list tr__cases_magnitude = {"magnitude", get};
