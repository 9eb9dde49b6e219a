// One row of logits to its loss and to the gradient of its logits, for kernel files. A
// row is read once from memory (its maximum), then from the cache.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_CPU_SOFTMAX_ROW_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_CPU_SOFTMAX_ROW_H

#include "backend/cpu/real.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

// What a row whose largest logit is `top` is shifted by: of -infinity alone by nothing,
// so that their powers are 0 and that of a NaN is NaN.
static inline float tr__row_shift(float top) {
    return top > -INFINITY ? top : 0;
}

// Added in f32 by lanes, this many at a time, then in f64.
enum { TR_SOFTMAX_BLOCK = 1024 };

static inline float tr__row_top(const float *row, int64_t count) {
    tr_vf low = tr_v_set(-INFINITY), top[4] = {low, low, low, low};
    int64_t i = 0;
    for (; i + 4 * TR_VW <= count; i += 4 * TR_VW) {
        for (int k = 0; k < 4; k++) {
            top[k] = tr_v_max(top[k], tr_v_load(row + i + k * TR_VW));
        }
    }
    float result =
        tr_v_top(tr_v_max(tr_v_max(top[0], top[1]), tr_v_max(top[2], top[3])));
    for (; i < count; i++) {
        result = row[i] > result ? row[i] : result;
    }
    return result;
}

// Is `target` the lowest index that has the value `top`?
static inline bool tr__row_is_guess(const float *row, int64_t target, float top) {
    int before = 0;
    if (row[target] != top) {
        return false;
    }
    for (int64_t i = 0; i < target; i++) {
        before |= row[i] == top;
    }
    return !before;
}

// The sum of e^(x - top) over a block, count <= TR_SOFTMAX_BLOCK; with `keep` the terms
// replace the row's.
__attribute__((always_inline)) static inline double
tr__row_exp_block(float *row, int64_t count, tr_vf top, bool keep) {
    tr_vf sum = tr_v_set(0);
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_vf e = tr_v_exp(tr_v_load(row + i) - top);
        sum += e;
        if (keep) {
            tr_v_store(row + i, e);
        }
    }
    int rest = (int)(count - i);
    if (rest > 0) {
        tr_vf e = tr_v_exp(tr_v_load_part(row + i, rest, -INFINITY) - top);
        sum += e;
        if (keep) {
            tr_v_store_part(row + i, e, rest);
        }
    }
    return tr_v_sum(sum);
}

__attribute__((always_inline)) static inline double
tr__row_exp(float *row, int64_t count, float top, bool keep) {
    double sum = 0;
    for (int64_t i = 0; i < count; i += TR_SOFTMAX_BLOCK) {
        int64_t left = count - i;
        int64_t block = left < TR_SOFTMAX_BLOCK ? left : TR_SOFTMAX_BLOCK;
        sum += tr__row_exp_block(row + i, block, tr_v_set(top), keep);
    }
    return sum;
}

// to: [count] = factor * row; may begin where the row does.
static inline void tr__row_scale(const float *row, int64_t count, float factor,
                                 tr_real *to) {
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_v_store_r(to + i, tr_v_load(row + i) * factor);
    }
    if (i < count) {
        int rest = (int)(count - i);
        tr_v_store_part_r(to + i, tr_v_load_part(row + i, rest, 0) * factor, rest);
    }
}

// row: [count], becomes factor * row, and `more` added to the element `place` (-1:
// none), as tr_real from where it begins on.
static inline void tr__row_close(float *row, int64_t count, float factor, int64_t place,
                                 float more) {
    tr_real *to = (tr_real *)(void *)row;
    float special = place >= 0 ? row[place] * factor : 0;
    tr__row_scale(row, count, factor, to);
    if (place >= 0) {
        tr_real value = tr_r_of(special + more);
        memcpy(to + place, &value, sizeof value);
    }
}

// row: [count] logits -> the row's loss; *correct: is the target the best guess?
static inline double tr__row_loss(float *row, int64_t count, int32_t target,
                                  int32_t *correct) {
    float top = tr__row_top(row, count), wanted = row[target];
    *correct = tr__row_is_guess(row, target, top);
    return log(tr__row_exp(row, count, top, false)) + ((double)top - wanted);
}

// The same; the row becomes (softmax - [index is target]) * seed, as tr_real.
static inline double tr__row_gradient(float *row, int64_t count, int32_t target,
                                      float seed, int32_t *correct) {
    float top = tr__row_top(row, count), wanted = row[target];
    *correct = tr__row_is_guess(row, target, top);
    double sum = tr__row_exp(row, count, top, true);
    tr__row_close(row, count, (float)(seed / sum), target, -seed);
    return log(sum) + ((double)top - wanted);
}

#endif
