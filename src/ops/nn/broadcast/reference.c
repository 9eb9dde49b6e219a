#include "ops/nn/broadcast/sizes.h"

extern const tr_kernel tr__expand_reference, tr__sum_reference, tr__repeat_reference,
    tr__repeat_backward_reference;

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static void repeat(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [outer, inner]
    float *y = launch->out[0];      // [outer, times, inner]
    tr_broadcast_sizes s = tr__broadcast_sizes(desc, false);
    for (int64_t i = 0; i < s.outer * s.times * s.inner; i++) {
        int64_t from = i / s.inner / s.times * s.inner + i % s.inner;
        put(y + i, (double)s.scale * x[from], launch->accumulate & 1);
    }
}

static void sum(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [outer, times, inner]
    float *y = launch->out[0];      // [outer, inner]
    tr_broadcast_sizes s = tr__broadcast_sizes(desc, true);
    for (int64_t i = 0; i < s.outer * s.inner; i++) {
        const float *from = x + i / s.inner * s.times * s.inner + i % s.inner;
        double total = 0;
        for (int64_t n = 0; n < s.times; n++) {
            total += from[n * s.inner];
        }
        put(y + i, (double)s.scale * total, launch->accumulate & 1);
    }
}

const tr_kernel tr__expand_reference = {
    .name = "expand.reference",
    .supports = tr__desc_f32,
    .cost = tr__broadcast_cost,
    .launch = repeat,
};

const tr_kernel tr__sum_reference = {
    .name = "sum.reference",
    .supports = tr__desc_f32,
    .cost = tr__broadcast_cost,
    .launch = sum,
};

const tr_kernel tr__repeat_reference = {
    .name = "repeat.reference",
    .supports = tr__desc_f32,
    .cost = tr__broadcast_cost,
    .launch = repeat,
};

const tr_kernel tr__repeat_backward_reference = {
    .name = "repeat_backward.reference",
    .supports = tr__desc_f32,
    .cost = tr__broadcast_cost,
    .launch = sum,
};
