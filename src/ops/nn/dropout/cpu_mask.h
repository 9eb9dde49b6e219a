// Dropout of runs of elements, for kernel files: dropout alone and at the end of a
// residual branch.
#ifndef TR_OPS_NN_DROPOUT_CPU_MASK_H
#define TR_OPS_NN_DROPOUT_CPU_MASK_H

#include "backend/cpu/parallel.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/dropout/cpu_draw.h"
#include "ops/nn/dropout/dropout.h"

// Multipliers made at a time, in whole groups of draws.
enum { TR_MASK_RUN = 4 * TR_DRAW_GROUP };

// With its draw an element costs about as much as this many moved ones.
enum { TR_MASK_WEIGHT = 4 };

typedef struct tr_mask {
    const tr_run_context *run;
    tr_dropout_attr attr;
    tr_dropout_place of;
} tr_mask;

// The mask of x [B, ...] of that shape.
static inline tr_mask tr__mask_open(const tr_dropout_attr *attr,
                                    const tr_run_context *run, tr_shape shape) {
    return (tr_mask){run, *attr, tr__dropout_place(attr, shape)};
}

// out = r + multiplier x, or += with `add`; r NULL: zeros. r, x, multiplier, out:
// [count].
static inline void tr__mask_multiply(const tr_real *r, const tr_real *x,
                                     const float *multiplier, tr_real *out,
                                     int64_t count, bool add) {
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_vf base = r ? tr_v_load_r(r + i) : tr_v_set(0);
        tr_vf value = tr_v_load(multiplier + i) * tr_v_load_r(x + i) + base;
        tr_v_store_r(out + i, add ? tr_v_load_r(out + i) + value : value);
    }
    int rest = (int)(count - i);
    if (rest > 0) {
        tr_vf base = r ? tr_v_load_part_r(r + i, rest, 0) : tr_v_set(0);
        tr_vf value =
            tr_v_load_part(multiplier + i, rest, 0) * tr_v_load_part_r(x + i, rest, 0) +
            base;
        value = add ? tr_v_load_part_r(out + i, rest, 0) + value : value;
        tr_v_store_part_r(out + i, value, rest);
    }
}

// out = r + dropout(x), or += with `add`, on elements first .. first + count - 1 of the
// tensor; r (NULL: zeros), x, out: [count], at element `first`.
static inline void tr__mask_apply(const tr_mask *mask, int64_t first, int64_t count,
                                  const tr_real *r, const tr_real *x, tr_real *out,
                                  bool add) {
    float multiplier[TR_MASK_RUN];
    int64_t per_sample = mask->of.per_sample;
    first += mask->of.first;
    for (int64_t done = 0; done < count;) {
        int64_t sample = (first + done) / per_sample;
        int64_t element = (first + done) % per_sample;
        int64_t part = TR_MASK_RUN - element % TR_MASK_RUN;
        part = part < count - done ? part : count - done;
        part = part < per_sample - element ? part : per_sample - element;
        tr_draw draw = tr__draw_open(mask->run, sample, mask->attr.draw_id,
                                     mask->attr.probability);
        tr_v_draw_fill(&draw, (uint64_t)element, part, multiplier);
        tr__mask_multiply(r ? r + done : NULL, x + done, multiplier, out + done, part,
                          add);
        done += part;
    }
}

// One thread's part of tr__mask_launch.
static inline void tr__mask_range(const tr_op_desc *desc, const tr_launch *launch,
                                  const tr_real *r, const tr_real *x, tr_range range) {
    const tr_dropout_attr *attr = (const void *)desc->attr;
    tr_real *y = (tr_real *)launch->out[0] + range.begin; // of [B, ...]
    int64_t count = range.end - range.begin;
    bool add = launch->accumulate & 1;
    r = r ? r + range.begin : NULL;
    x += range.begin;
    if (attr->probability > 0) {
        tr_mask mask = tr__mask_open(attr, launch->run, desc->in[0].shape);
        tr__mask_apply(&mask, range.begin, count, r, x, y, add);
    } else if (r) {
        tr_v_map2(tr_v_add, r, x, y, count, add);
    } else {
        tr_v_map2(tr_v_first, x, x, y, count, add);
    }
}

// out[0] = r + dropout(x), or += as the launch says, with the attributes of the desc
// (tr_dropout_attr) on its threads; r (NULL: zeros), x: [B, ...].
static inline void tr__mask_launch(const tr_op_desc *desc, const tr_launch *launch,
                                   const tr_real *r, const tr_real *x) {
    const tr_dropout_attr *attr = (const void *)desc->attr;
    int64_t count = tr_shape_count(desc->in[0].shape);
    int64_t weight = attr->probability > 0 ? TR_MASK_WEIGHT : 1;
    int threads = tr__threads_for(count, weight, desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr__mask_range(desc, launch, r, x,
                       tr__range_part(count, TR_MASK_RUN, t, threads));
    }
}

#endif
