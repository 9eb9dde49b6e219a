#include "ops/cases.h"
#include "ops/nn/swiglu/swiglu.h"

extern const tr_case_list tr__cases_swiglu;

static const tr_shape shapes[] = {
    {2, {1, 2}},   {2, {3, 34}},    {3, {3, 17, 126}},
    {2, {5, 514}}, {2, {257, 600}}, {2, {5, 528}},
};

// Wide inputs, so that both tails are met.
static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof shapes / sizeof shapes[0])) {
        return false;
    }
    *out = (tr_case){
        .name = "swiglu",
        .op = &tr__op_swiglu,
        .in_count = 1,
        .in = {{.desc = {TR_F32, shapes[index]}, .scale = 3}},
        .tolerance = 3e-7,
        .half_tolerance = 1,
        .gradient_tolerance = tr_shape_count(shapes[index]) < 200 ? 1e-3 : 0,
    };
    return true;
}

const tr_case_list tr__cases_swiglu = {"swiglu", get};
