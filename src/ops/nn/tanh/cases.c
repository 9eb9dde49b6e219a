#include "ops/cases.h"
#include "ops/nn/tanh/tanh.h"

extern const tr_case_list tr__cases_tanh;

static const tr_shape shapes[] = {
    {1, {1}}, {1, {3}}, {2, {3, 17}}, {3, {2, 3, 63}}, {2, {257, 300}},
};

// From near 0, where tanh is its argument, to where it has reached 1.
static bool get(int index, tr_case *out) {
    static const float scales[] = {1e-3f, 1, 8};
    int count = (int)(sizeof shapes / sizeof shapes[0]);
    if (index < 0 || index >= 3 * count) {
        return false;
    }
    tr_shape shape = shapes[index / 3];
    bool small = tr_shape_count(shape) < 100 && scales[index % 3] == 1;
    *out = (tr_case){
        .name = "tanh",
        .op = &tr__op_tanh,
        .in_count = 1,
        .in = {{.desc = {TR_F32, shape}, .scale = scales[index % 3]}},
        .tolerance = 3e-7,
        .half_tolerance = 1,
        .gradient_tolerance = small ? 1e-3 : 0,
    };
    return true;
}

const tr_case_list tr__cases_tanh = {"tanh", get};
