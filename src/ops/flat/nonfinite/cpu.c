#include "backend/cpu/parallel.h"
#include "base/checked.h"
#include "ops/flat/nonfinite/nonfinite.h"

#include <stdbool.h>

extern const tr_kernel tr__nonfinite_kernel;

enum { RUN = 1 << 14 }; // elements that one thread looks at in a row

// Is the exponent of one of them all ones? x: [count]
static bool is_any_f16(const uint16_t *x, int64_t count) {
    uint16_t any = 0;
#pragma omp simd reduction(| : any)
    for (int64_t i = 0; i < count; i++) {
        any |= (uint16_t)((x[i] & 0x7C00) == 0x7C00);
    }
    return any;
}

static bool is_any_f32(const uint32_t *x, int64_t count) {
    uint32_t any = 0;
#pragma omp simd reduction(| : any)
    for (int64_t i = 0; i < count; i++) {
        any |= (uint32_t)((x[i] & 0x7F800000) == 0x7F800000);
    }
    return any;
}

static bool is_any(tr_dtype dtype, const void *x, int64_t count, int threads) {
    int any = 0;
    threads = tr__threads_for(count, 1, threads);
#pragma omp parallel for num_threads(threads) reduction(| : any) if (threads > 1)
    for (int64_t first = 0; first < count; first += RUN) {
        int64_t length = tr__min_i64(RUN, count - first);
        any |= dtype == TR_F16 ? is_any_f16((const uint16_t *)x + first, length)
                               : is_any_f32((const uint32_t *)x + first, length);
    }
    return any;
}

static void launch_nonfinite(const tr_op_desc *desc, void *state,
                             const tr_launch *launch) {
    double place = tr__nonfinite_place(desc, launch);
    double *first = launch->out[0];
    (void)state;
    if ((*first == 0 || place < *first) &&
        is_any(desc->in[0].dtype, launch->in[0], tr_shape_count(desc->in[0].shape),
               desc->target.workers)) {
        *first = place;
    }
}

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F16 || desc->in[0].dtype == TR_F32;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    *out = (tr_cost){.bytes = (double)tr_tensor_bytes(desc->in[0])};
}

const tr_kernel tr__nonfinite_kernel = {
    .name = "nonfinite.cpu",
    .supports = supports,
    .cost = cost,
    .launch = launch_nonfinite,
};
