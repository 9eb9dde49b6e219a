#include "ops/nn/dropout/element.h"
#include "ops/nn/residual/residual.h"
#include "ops/operand.h"

extern const tr_kernel tr__residual_reference;

static void residual(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_dropout_attr *attr = (const void *)desc->attr;
    const float *r = launch->in[0], *x = launch->in[1]; // [B, ...]
    float *y = launch->out[0];                          // [B, ...]
    tr_shape shape = desc->in[0].shape;
    int64_t count = tr_shape_count(shape);
    for (int64_t i = 0; i < count; i++) {
        double kept = (double)x[i] * tr__dropout_element(attr, launch->run, shape, i);
        float value = (float)(r[i] + kept);
        y[i] = launch->accumulate & 1 ? y[i] + value : value;
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

const tr_kernel tr__residual_reference = {
    .name = "residual.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = residual,
};
