#include "ops/nn/token_parts/token_parts.h"
#include "ops/operand.h"

extern const tr_kernel tr__token_parts_reference;

static void move(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0];
    float *y = launch->out[0];
    tr_token_part part = tr__token_part(desc);
    for (int64_t i = 0; i < part.count; i++) {
        float value = x[part.gathers ? i : part.first + i];
        float *to = &y[part.gathers ? part.first + i : i];
        *to = launch->accumulate & 1 ? *to + value : value;
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    int64_t count = tr__token_part(desc).count;
    out->bytes = 2.0 * (double)count * (double)tr_dtype_bytes(desc->in[0].dtype);
}

const tr_kernel tr__token_parts_reference = {
    .name = "token_parts.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = move,
};
