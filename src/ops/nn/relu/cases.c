#include "ops/cases.h"
#include "ops/nn/relu/relu.h"

extern const tr_case_list tr__cases_relu;

// Finite differences are tried on few, widely spread elements: one within a step of 0
// has no derivative there.
static const struct {
    tr_shape shape;
    double gradient_tolerance;
} cases[] = {
    {{1, {1}}, 1e-3},   {{1, {3}}, 1e-3},      {{2, {3, 5}}, 1e-3},
    {{2, {17, 63}}, 0}, {{3, {2, 3, 257}}, 0}, {{2, {257, 300}}, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = (tr_case){
        .name = "relu",
        .op = &tr__op_relu,
        .in_count = 1,
        .in = {{.desc = {TR_F32, cases[index].shape}, .scale = 10}},
        .tolerance = 1e-7,
        .half_tolerance = 1,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    return true;
}

const tr_case_list tr__cases_relu = {"relu", get};
