#include "ops/flat/accumulate/accumulate.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__accumulate_reference;
void tr__fixed_convert_reference(const int64_t *sums, int64_t count, double scale,
                                 int threads, float *x);

static void add_fixed(const float *x, int64_t count, bool add,
                      const tr_run_context *run, int64_t *sums, double *counts) {
    bool too_large = false, not_finite = false;
    for (int64_t i = 0; i < count; i++) {
        double term = rint((double)x[i] * run->fixed_scale);
        bool fits = fabs(term) <= run->fixed_limit;
        int64_t whole = fits ? (int64_t)term : 0;
        sums[i] = add ? sums[i] + whole : whole;
        too_large = too_large || (!fits && isfinite(x[i]));
        not_finite = not_finite || !isfinite(x[i]);
    }
    if (counts) {
        counts[TR_ACCUMULATE_TOO_LARGE] += too_large;
        counts[TR_ACCUMULATE_NOT_FINITE] += not_finite;
    }
}

static void add_sums(const uint64_t *x, int64_t count, bool add, uint64_t *sums) {
    for (int64_t i = 0; i < count; i++) {
        sums[i] = add ? sums[i] + x[i] : x[i];
    }
}

// Sums in 16 bits come here as f32 (tr__widened).
static void accumulate(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0];
    int64_t count = tr_shape_count(desc->in[0].shape);
    bool add = launch->accumulate & 1;
    if (desc->in[0].dtype == TR_I64) {
        add_sums(launch->in[0], count, add, launch->out[0]);
        return;
    }
    if (desc->out[0].dtype == TR_I64) {
        add_fixed(x, count, add, launch->run, launch->out[0], launch->out[1]);
        return;
    }
    float *sums = launch->out[0];
    for (int64_t i = 0; i < count; i++) {
        sums[i] = add ? sums[i] + x[i] : x[i];
    }
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype to = desc->out[0].dtype;
    tr_dtype from = desc->in[0].dtype;
    return from == TR_F32 ? to == TR_F32 || to == TR_I64
                          : from == TR_I64 && to == TR_I64;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__accumulate_cost(desc, out);
}

const tr_kernel tr__accumulate_reference = {
    .name = "accumulate.reference",
    .supports = supports,
    .cost = cost,
    .launch = accumulate,
};

// A long double holds 64 bits on x86 and 113 on Arm: the sum is exact in it.
void tr__fixed_convert_reference(const int64_t *sums, int64_t count, double scale,
                                 int threads, float *x) {
    (void)threads;
    for (int64_t i = 0; i < count; i++) {
        x[i] = (float)((long double)sums[i] / (long double)scale);
    }
}
