#include "ops/nn/dropout/element.h"
#include "ops/operand.h"

extern const tr_kernel tr__dropout_reference;

static void dropout(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_dropout_attr *attr = (const void *)desc->attr;
    const float *x = launch->in[0]; // [B, ...]
    float *y = launch->out[0];      // [B, ...]
    tr_shape shape = desc->in[0].shape;
    int64_t count = tr_shape_count(shape);
    for (int64_t i = 0; i < count; i++) {
        float value = x[i] * tr__dropout_element(attr, launch->run, shape, i);
        y[i] = launch->accumulate & 1 ? y[i] + value : value;
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

const tr_kernel tr__dropout_reference = {
    .name = "dropout.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = dropout,
};
