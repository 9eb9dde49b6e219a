#include "ops/cases.h"
#include "ops/nn/silu/silu.h"

extern const tr_case_list tr__cases_silu;

static const tr_shape shapes[] = {
    {1, {1}}, {1, {3}}, {2, {3, 17}}, {3, {2, 3, 63}}, {2, {257, 300}},
};

// From near 0, where it is half its argument, to where it is that, or 0.
static bool get(int index, tr_case *out) {
    static const float scales[] = {1e-3f, 1, 8};
    int count = (int)(sizeof shapes / sizeof shapes[0]);
    if (index < 0 || index >= 3 * count) {
        return false;
    }
    tr_shape shape = shapes[index / 3];
    bool small = tr_shape_count(shape) < 100 && scales[index % 3] == 1;
    *out = (tr_case){
        .name = "silu",
        .op = &tr__op_silu,
        .in_count = 1,
        .in = {{.desc = {TR_F32, shape}, .scale = scales[index % 3]}},
        .tolerance = 1e-6,
        .half_tolerance = 1,
        .gradient_tolerance = small ? 1e-3 : 0,
    };
    return true;
}

const tr_case_list tr__cases_silu = {"silu", get};
