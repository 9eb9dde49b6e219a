#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd_map.h"
#include "ops/dropout/mask.h"
#include "ops/operand.h"
#include "ops/residual/residual.h"

extern const tr_kernel TR_ISA_NAME(tr__residual_kernel);

static void residual_range(const tr_op_desc *desc, const tr_launch *launch,
                           tr_range range) {
    const tr_dropout_attr *attr = (const void *)desc->attr;
    const float *r = (const float *)launch->in[0] + range.begin; // of [B, ...]
    const float *x = (const float *)launch->in[1] + range.begin; // of [B, ...]
    float *y = (float *)launch->out[0] + range.begin;            // of [B, ...]
    int64_t count = range.end - range.begin;
    bool add = launch->accumulate & 1;
    if (attr->probability > 0) {
        tr_mask mask = tr__mask_open(attr, launch->run, desc->in[0].shape);
        tr__mask_apply(&mask, range.begin, count, r, x, y, add);
    } else {
        tr_v_map2(tr_v_add, r, x, y, count, add);
    }
}

static void launch_residual(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    const tr_dropout_attr *attr = (const void *)desc->attr;
    int64_t count = tr_shape_count(desc->in[0].shape);
    int64_t weight = attr->probability > 0 ? TR_MASK_WEIGHT : 1;
    int threads = tr__threads_for(count, weight, desc->threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        residual_range(desc, launch, tr__range_part(count, TR_MASK_RUN, t, threads));
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

const tr_kernel TR_ISA_NAME(tr__residual_kernel) = {
    .name = "residual.cpu." TR_ISA_TEXT,
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_residual,
};
