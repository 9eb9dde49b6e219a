#include "ops/cases.h"
#include "ops/nn/linear/linear.h"

#include <string.h>

extern const tr_case_list tr__cases_linear;

// Odd sizes, one row, one column, and one (the last) large enough for the way that big
// products are run. Finite differences are tried on the small ones, where no activation
// has a kink between.
static const struct {
    tr_shape x;
    int64_t out;
    tr_weight_layout layout;
    tr_activation activation;
    bool bias;
    double gradient_tolerance;
} cases[] = {
    {{2, {1, 1}}, 1, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, true, 1e-3},
    {{2, {3, 1}}, 17, TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE, true, 1e-3},
    {{2, {1, 17}}, 3, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, false, 1e-3},
    {{3, {3, 17, 5}}, 3, TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE, true, 1e-3},
    {{3, {2, 9, 63}}, 17, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, true, 0},
    {{2, {17, 63}}, 257, TR_WEIGHT_IN_OUT, TR_ACTIVATION_RELU, true, 0},
    {{2, {64, 100}}, 500, TR_WEIGHT_OUT_IN, TR_ACTIVATION_RELU, true, 0},
    {{2, {63, 17}}, 63, TR_WEIGHT_OUT_IN, TR_ACTIVATION_RELU, false, 0},
    {{2, {9, 5}}, 50, TR_WEIGHT_IN_OUT, TR_ACTIVATION_RELU, true, 0},
    {{2, {3, 7}}, 20, TR_WEIGHT_OUT_IN, TR_ACTIVATION_RELU, true, 0},
    {{2, {64, 500}}, 10, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, true, 0},
    {{2, {9, 24}}, 264, TR_WEIGHT_OUT_IN, TR_ACTIVATION_RELU, true, 0},
    {{3, {1, 257, 63}}, 257, TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE, false, 0},
    {{2, {300, 5}}, 40, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, true, 0},
    {{2, {257, 300}}, 257, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, true, 0},
    {{3, {1, 257, 300}}, 257, TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE, true, 0},
};

static tr_case_input input(tr_shape shape) {
    return (tr_case_input){.desc = {TR_F32, shape}};
}

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    int64_t in = cases[index].x.dim[cases[index].x.rank - 1], width = cases[index].out;
    bool in_first = cases[index].layout == TR_WEIGHT_IN_OUT;
    *out = (tr_case){
        .name = "linear",
        .op = &tr__op_linear,
        .in_count = 3,
        .in = {input(cases[index].x),
               input(in_first ? TR_SHAPE2(in, width) : TR_SHAPE2(width, in))},
        .tolerance = 1e-5,
        .half_tolerance = 1,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    if (cases[index].bias) {
        out->in[2] = input(TR_SHAPE1(width));
    }
    tr_linear_attr attr = {cases[index].layout, cases[index].activation};
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_linear = {"linear", get};
