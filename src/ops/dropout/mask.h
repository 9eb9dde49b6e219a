// Dropout of runs of elements, for kernel files: dropout alone and at the end of a
// residual branch.
#ifndef TR_OPS_DROPOUT_MASK_H
#define TR_OPS_DROPOUT_MASK_H

#include "ops/dropout/draw_simd.h"
#include "ops/dropout/dropout.h"

// Multipliers made at a time, in whole groups of draws.
enum { TR_MASK_RUN = 4 * TR_DRAW_GROUP };

// With its draw an element costs about as much as this many moved ones.
enum { TR_MASK_WEIGHT = 4 };

typedef struct tr_mask {
    const tr_run_context *run;
    tr_dropout_attr attr;
    int64_t per_sample; // elements of one sample
} tr_mask;

// The mask of a tensor [B, ...] of that shape.
static inline tr_mask tr__mask_open(const tr_dropout_attr *attr,
                                    const tr_run_context *run, tr_shape shape) {
    return (tr_mask){run, *attr, tr_shape_count(shape) / shape.dim[0]};
}

// out = r + multiplier x, or += with `add`; r NULL: zeros. r, x, multiplier, out:
// [count].
static inline void tr__mask_multiply(const float *r, const float *x,
                                     const float *multiplier, float *out, int64_t count,
                                     bool add) {
    for (int64_t i = 0; i < count; i++) {
        float value = multiplier[i] * x[i] + (r ? r[i] : 0);
        out[i] = add ? out[i] + value : value;
    }
}

// out = r + dropout(x), or += with `add`, on elements first .. first + count - 1 of the
// tensor; r (NULL: zeros), x, out: [count], at element `first`.
static inline void tr__mask_apply(const tr_mask *mask, int64_t first, int64_t count,
                                  const float *r, const float *x, float *out,
                                  bool add) {
    float multiplier[TR_MASK_RUN];
    for (int64_t done = 0; done < count;) {
        int64_t sample = (first + done) / mask->per_sample;
        int64_t element = (first + done) % mask->per_sample;
        int64_t part = TR_MASK_RUN - element % TR_MASK_RUN;
        part = part < count - done ? part : count - done;
        part = part < mask->per_sample - element ? part : mask->per_sample - element;
        tr_draw draw = tr__draw_open(mask->run, sample, mask->attr.draw_id,
                                     mask->attr.probability);
        tr_v_draw_fill(&draw, (uint64_t)element, part, multiplier);
        tr__mask_multiply(r ? r + done : NULL, x + done, multiplier, out + done, part,
                          add);
        done += part;
    }
}

#endif
