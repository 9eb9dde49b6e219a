// A gradient comes from outside, once a micro-batch: one number after the other.
#include "backend/cpu/parallel.h"
#include "base/half.h"
#include "ops/flat/seed/seed.h"
#include "ops/operand.h"

extern const tr_kernel tr__seed_kernel;

static inline float get(tr_dtype dtype, const void *from, int64_t at) {
    return dtype == TR_F32 ? ((const float *)from)[at]
                           : tr__half_to_f32(dtype, ((const uint16_t *)from)[at]);
}

static inline void put(tr_dtype dtype, void *to, int64_t at, float value) {
    if (dtype == TR_F32) {
        ((float *)to)[at] = value;
    } else {
        ((uint16_t *)to)[at] = tr__half_of_f32(dtype, value);
    }
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_dtype from = desc->in[0].dtype, to = desc->out[0].dtype;
    int64_t given = tr_shape_count(desc->in[0].shape);
    int64_t room = tr_shape_count(desc->out[0].shape);
    int threads = tr__threads_for(room, 2, desc->target.workers);
    bool add = launch->accumulate & 1;
    float seed = launch->run->loss_seed;
    (void)state;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < room; i++) {
        float value = i < given ? get(from, launch->in[0], i) * seed : 0;
        put(to, launch->out[0], i, add ? get(to, launch->out[0], i) + value : value);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__dtype_is_real(desc->in[0].dtype) &&
           tr__dtype_is_real(desc->out[0].dtype);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel tr__seed_kernel = {
    .name = "seed.cpu",
    .supports = supports,
    .cost = cost,
    .launch = launch,
};
