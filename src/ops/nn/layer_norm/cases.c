#include "ops/cases.h"
#include "ops/nn/layer_norm/layer_norm.h"

#include <string.h>

extern const tr_case_list tr__cases_layer_norm;

static const struct {
    bool residual;
    tr_shape shape;
    float dropout;
    double gradient_tolerance;
} cases[] = {
    {false, {2, {1, 17}}, 0, 0},         {false, {2, {3, 3}}, 0, 2e-3},
    {false, {3, {2, 3, 17}}, 0, 2e-3},   {false, {2, {17, 63}}, 0, 0},
    {false, {3, {3, 63, 257}}, 0, 0},    {false, {2, {257, 768}}, 0, 0},
    {false, {2, {300, 33}}, 0, 0},       {true, {2, {1, 17}}, 0, 0},
    {true, {2, {3, 5}}, 0, 2e-3},        {true, {3, {2, 3, 17}}, 0.3f, 2e-3},
    {true, {3, {3, 17, 63}}, 0.1f, 0},   {true, {3, {2, 63, 257}}, 0, 0},
    {true, {3, {3, 128, 384}}, 0.1f, 0}, {false, {2, {70, 264}}, 0, 0},
    {false, {2, {300, 40}}, 0, 0},       {true, {3, {2, 9, 264}}, 0.1f, 0},
    {false, {2, {40, 520}}, 0, 0},       {false, {2, {35, 776}}, 0, 0},
    {false, {2, {9, 2056}}, 0, 0},       {true, {3, {1, 3, 4104}}, 0, 0},
    {false, {2, {3, 8200}}, 0, 0},       {true, {3, {2, 2, 1544}}, 0.1f, 0},
    {false, {2, {3, 1032}}, 0, 0},
};

// Tolerances allow for f32 sums over hundreds of rows.
static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    bool residual = cases[index].residual;
    tr_shape shape = cases[index].shape;
    tr_case_input rows = {.desc = {TR_F32, shape}, .scale = 2};
    tr_case_input vector = {.desc = {TR_F32, TR_SHAPE1(shape.dim[shape.rank - 1])}};
    *out = (tr_case){
        .name = residual ? "residual norm" : "layer norm",
        .op = residual ? &tr__op_residual_norm : &tr__op_layer_norm,
        .in_count = residual ? 4 : 3,
        .in = {rows, vector, vector},
        .tolerance = 1e-5,
        .half_tolerance = 4,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    if (residual) {
        out->in[1] = rows;
        out->in[3] = vector;
    }
    tr_layer_norm_attr attr = {
        1e-5f, {.probability = cases[index].dropout, .draw_id = (uint32_t)index}};
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_layer_norm = {"layer_norm", get};
