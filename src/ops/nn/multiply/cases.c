#include "ops/cases.h"
#include "ops/nn/multiply/multiply.h"

extern const tr_case_list tr__cases_multiply;

static const tr_shape shapes[] = {
    {1, {1}}, {1, {3}}, {2, {3, 17}}, {3, {2, 3, 63}}, {2, {257, 300}},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof shapes / sizeof shapes[0])) {
        return false;
    }
    tr_shape shape = shapes[index];
    *out = (tr_case){
        .name = "multiply",
        .op = &tr__op_multiply,
        .in_count = 2,
        .in = {{.desc = {TR_F32, shape}}, {.desc = {TR_F32, shape}}},
        .tolerance = 2e-7,
        .half_tolerance = 1,
        .gradient_tolerance = tr_shape_count(shape) < 100 ? 1e-3 : 0,
    };
    return true;
}

const tr_case_list tr__cases_multiply = {"multiply", get};
