#include "ops/cases.h"
#include "ops/nn/bias/bias.h"

extern const tr_case_list tr__cases_bias;

static const tr_shape shapes[] = {
    {2, {1, 1}}, {2, {2, 3}}, {2, {3, 17}}, {3, {2, 3, 63}}, {2, {257, 300}},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof shapes / sizeof shapes[0])) {
        return false;
    }
    tr_shape shape = shapes[index];
    *out = (tr_case){
        .name = "bias",
        .op = &tr__op_bias,
        .in_count = 2,
        .in = {{.desc = {TR_F32, shape}},
               {.desc = {TR_F32, TR_SHAPE1(shape.dim[shape.rank - 1])}}},
        .tolerance = 2e-7,
        .half_tolerance = 1,
        .gradient_tolerance = tr_shape_count(shape) < 100 ? 1e-3 : 0,
    };
    return true;
}

const tr_case_list tr__cases_bias = {"bias", get};
