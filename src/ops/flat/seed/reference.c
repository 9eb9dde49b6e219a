// In f32.
#include "ops/flat/seed/seed.h"
#include "ops/operand.h"

extern const tr_kernel tr__seed_reference;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    const float *g = launch->in[0];
    float *dy = launch->out[0];
    int64_t given = tr_shape_count(desc->in[0].shape);
    (void)state;
    for (int64_t i = 0; i < tr_shape_count(desc->out[0].shape); i++) {
        float value = i < given ? g[i] * launch->run->loss_seed : 0;
        dy[i] = launch->accumulate & 1 ? dy[i] + value : value;
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel tr__seed_reference = {
    .name = "seed.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch,
};
