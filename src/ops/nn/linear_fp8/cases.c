#include "ops/cases.h"
#include "ops/nn/linear_fp8/linear_fp8.h"

#include <string.h>

extern const tr_case_list tr__cases_linear_fp8;

// Those of `linear` in what can go wrong: odd sizes, one row, one column, large ones;
// and factors of any size, the smallest and largest of which a scale has to bring into
// the range of 8 bits. Rounding has no slope, so finite differences are not tried.
static const struct {
    tr_shape x;
    int64_t out;
    tr_weight_layout layout;
    tr_activation activation;
    bool bias;
    float scale; // of x
} cases[] = {
    {{2, {1, 1}}, 1, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, true, 1},
    {{2, {3, 1}}, 17, TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE, true, 1e-6f},
    {{2, {1, 17}}, 3, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, false, 1e3f},
    {{3, {3, 17, 5}}, 3, TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE, true, 1},
    {{3, {2, 9, 63}}, 17, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, true, 1e-20f},
    {{2, {17, 63}}, 257, TR_WEIGHT_IN_OUT, TR_ACTIVATION_RELU, true, 3},
    {{2, {64, 100}}, 500, TR_WEIGHT_OUT_IN, TR_ACTIVATION_RELU, true, 1},
    {{2, {32, 64}}, 48, TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE, true, 100},
    {{3, {2, 33, 80}}, 96, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, false, 1},
    {{2, {17, 48}}, 32, TR_WEIGHT_OUT_IN, TR_ACTIVATION_RELU, true, 1e-3f},
    {{3, {1, 257, 300}}, 257, TR_WEIGHT_IN_OUT, TR_ACTIVATION_NONE, true, 1},
    {{2, {229, 144}}, 208, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, true, 1}, // in parts
    // Of these the largest values of factors are told, behind the bias.
    {{3, {2, 9, 48}}, 32, TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE, true, 1},
    {{2, {17, 63}}, 17, TR_WEIGHT_IN_OUT, TR_ACTIVATION_RELU, true, 0.1f},
    {{2, {65, 96}}, 144, TR_WEIGHT_IN_OUT, TR_ACTIVATION_RELU, false, 1},
};

enum { CASES = sizeof cases / sizeof *cases, TOLD_CASES = 3, TOLD = 3 };

// Tensor cores of sm_90 cut what they add, 32 products at once, 13 bits below the
// largest one: half of them lose some of that, and half of it on average.
static const double device_tolerance = 0x1p-13 * 32 / 4;

static tr_case_input input(tr_shape shape, float scale) {
    return (tr_case_input){.desc = {TR_F32, shape}, .scale = scale};
}

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= CASES) {
        return false;
    }
    int64_t in = cases[index].x.dim[cases[index].x.rank - 1], width = cases[index].out;
    bool in_first = cases[index].layout == TR_WEIGHT_IN_OUT;
    tr_shape weight = in_first ? TR_SHAPE2(in, width) : TR_SHAPE2(width, in);
    *out = (tr_case){
        .name = "linear_fp8",
        .op = &tr__op_linear_fp8,
        .in_count = 3,
        .in = {input(cases[index].x, cases[index].scale), input(weight, 1)},
        .tolerance = 1e-5,
        .device_tolerance = device_tolerance,
        .half_tolerance = 1,
    };
    if (cases[index].bias) {
        out->in[2] = input(TR_SHAPE1(width), cases[index].scale);
    }
    tr_linear_fp8_attr attr = {
        .linear = {cases[index].layout, cases[index].activation}};
    if (index >= CASES - TOLD_CASES) {
        tr_case_input told = {.desc = {TR_F32, TR_SHAPE2(2, 3)},
                              .fill = TR_FILL_POSITIVE};
        out->in_count = TOLD + TR_FP8_FACTORS;
        out->in[TOLD] = out->in[TOLD + 1] = told;
        out->always_f32 = 3u << TOLD;
        attr = (tr_linear_fp8_attr){attr.linear, {1, 2}, .axes = 1, .ranks = 1};
    }
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_linear_fp8 = {"linear_fp8", get};
