#include "ops/cases.h"
#include "ops/nn/softmax/softmax.h"

#include <string.h>

extern const tr_case_list tr__cases_softmax;

static const struct {
    tr_shape shape;
    tr_softmax_attr attr;
} cases[] = {
    {{1, {1}}, {1}},           {{2, {3, 5}}, {1}},         {{3, {2, 3, 17}}, {0.5f}},
    {{2, {33, 70}}, {0.125f}}, {{4, {2, 3, 5, 300}}, {2}},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = (tr_case){
        .name = "softmax",
        .op = &tr__op_softmax,
        .in_count = 1,
        .in = {{.desc = {TR_F32, cases[index].shape}}},
        .tolerance = 2e-6,
        .half_tolerance = 2,
        .gradient_tolerance = index < 3 ? 1e-3 : 0,
    };
    memcpy(out->attr, &cases[index].attr, sizeof cases[index].attr);
    return true;
}

const tr_case_list tr__cases_softmax = {"softmax", get};
