#include "ops/cases.h"
#include "ops/nn/pointwise/pointwise.h"

#include <string.h>

extern const tr_case_list tr__cases_pointwise;

static const tr_shape shapes[] = {{1, {1}}, {2, {3, 17}}, {3, {2, 33, 70}}};

// With numbers at which no element has a corner near it, as differences of values see.
static const tr_pointwise_attr functions[] = {
    {TR_POINTWISE_SIGMOID, 0, 0},
    {TR_POINTWISE_CLAMP, -20, 30},
    {TR_POINTWISE_HARDTANH, -20, 30},
    {TR_POINTWISE_LEAKY_RELU, 0.3f, 0},
    {TR_POINTWISE_ELU, 0.7f, 0},
    {TR_POINTWISE_HARDSIGMOID, 0, 0},
    {TR_POINTWISE_HARDSWISH, 0, 0},
    {TR_POINTWISE_SOFTPLUS, 1, 20},
    {TR_POINTWISE_EXP, 0, 0},
    {TR_POINTWISE_LOG, 0, 0},
    {TR_POINTWISE_SQRT, 0, 0},
    {TR_POINTWISE_POWER, -0.5f, 0},
    {TR_POINTWISE_LINEAR, -1.5f, 2},
    {TR_POINTWISE_ABS, 0, 0},
    // Without a look at their slopes in the corners:
    {TR_POINTWISE_CLAMP, -0.5f, 0.75f},
    {TR_POINTWISE_HARDTANH, 0, 6},
    {TR_POINTWISE_POWER, 3, 0},
    {TR_POINTWISE_POWER, 2, 0},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0], SMOOTH = 14 };

static bool is_smooth(int function) {
    int32_t kind = functions[function].kind;
    return function < SMOOTH && kind != TR_POINTWISE_LEAKY_RELU &&
           kind != TR_POINTWISE_ELU && kind != TR_POINTWISE_ABS;
}

static bool is_of_positive(int32_t kind) {
    return kind == TR_POINTWISE_LOG || kind == TR_POINTWISE_SQRT ||
           kind == TR_POINTWISE_POWER;
}

static bool get(int index, tr_case *out) {
    int count = (int)(sizeof shapes / sizeof shapes[0]);
    if (index < 0 || index >= count * FUNCTIONS) {
        return false;
    }
    tr_shape shape = shapes[index % count];
    int function = index / count;
    bool positive = is_of_positive(functions[function].kind);
    *out = (tr_case){
        .name = "pointwise",
        .op = &tr__op_pointwise,
        .in_count = 1,
        .in = {{.desc = {TR_F32, shape},
                .fill = positive ? TR_FILL_POSITIVE : TR_FILL_NORMAL}},
        .tolerance = 2e-6,
        .half_tolerance = 1,
        .gradient_tolerance =
            tr_shape_count(shape) < 100 && is_smooth(function) ? 1e-3 : 0,
    };
    memcpy(out->attr, &functions[function], sizeof functions[function]);
    return true;
}

const tr_case_list tr__cases_pointwise = {"pointwise", get};
