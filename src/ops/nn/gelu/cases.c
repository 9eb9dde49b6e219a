#include "ops/cases.h"
#include "ops/nn/gelu/gelu.h"

#include <string.h>

extern const tr_case_list tr__cases_gelu;

static const tr_shape shapes[] = {
    {1, {1}}, {2, {3, 17}}, {3, {3, 17, 63}}, {2, {1, 257}}, {2, {257, 300}},
};

// Every shape in both forms; wide inputs, so that both tails are met.
static bool get(int index, tr_case *out) {
    int shape_count = (int)(sizeof shapes / sizeof shapes[0]);
    if (index < 0 || index >= 2 * shape_count) {
        return false;
    }
    tr_gelu_attr attr = {index % 2 ? TR_GELU_ERF : TR_GELU_TANH};
    tr_shape shape = shapes[index / 2];
    *out = (tr_case){
        .name = index % 2 ? "gelu erf" : "gelu tanh",
        .op = &tr__op_gelu,
        .in_count = 1,
        .in = {{.desc = {TR_F32, shape}, .scale = 3}},
        .tolerance = 3e-7,
        .half_tolerance = 1,
        .gradient_tolerance = tr_shape_count(shape) < 100 ? 1e-3 : 0,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_gelu = {"gelu", get};
