// y = act(x W + b) of few rows, for kernel files: each weight is read once, in the
// order in which it lies in memory, so the speed is that of memory. Sums are f32.
#ifndef TR_BACKEND_CPU_FEW_ROWS_H
#define TR_BACKEND_CPU_FEW_ROWS_H

#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    TR_FEW_ROWS = 4,  // so many are few: reading W takes longer than multiplying
    TR_FEW_LINE = 64, // outputs that one thread has, so that threads share no line
};

typedef struct tr_few_rows {
    int64_t rows, in, out;
    bool in_out;          // W is [in, out], else [out, in]
    const tr_real *x, *w; // [rows, in]
    const tr_real *bias;  // [out], NULL: none
    bool relu;
    tr_real *y;        // [rows, out], or
    float *y_f32;      // where y is NULL
    float *space;      // tr__few_rows_floats
    const float *wide; // x in f32; set by tr__few_rows_run
    float *sums;       // [rows, out]; the same
} tr_few_rows;

static inline size_t tr__few_rows_floats(int64_t rows, int64_t in, int64_t out) {
    return (size_t)(rows * (in + TR_VW) + rows * out);
}

// a . b; two vectors of sums at least, so that no addition waits for the one before.
static inline float tr__few_rows_dot(const float *a, const tr_real *b, int64_t count) {
    tr_vf sum[4] = {tr_v_set(0), tr_v_set(0), tr_v_set(0), tr_v_set(0)};
    int64_t i = 0;
    for (; i + 4 * TR_VW <= count; i += 4 * TR_VW) {
        for (int k = 0; k < 4; k++) {
            sum[k] += tr_v_load(a + i + k * TR_VW) * tr_v_load_r(b + i + k * TR_VW);
        }
    }
    for (; i < count; i += TR_VW) {
        int left = tr_v_left(count, i);
        sum[0] += tr_v_load(a + i) * tr_v_load_some_r(b + i, left);
    }
    return tr_v_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static inline void tr__few_rows_dots(const tr_few_rows *p, tr_range outputs) {
    int64_t pitch = p->in + TR_VW;
    for (int64_t o = outputs.begin; o < outputs.end; o++) {
        for (int64_t r = 0; r < p->rows; r++) {
            p->sums[r * p->out + o] =
                tr__few_rows_dot(p->wide + r * pitch, p->w + o * p->in, p->in);
        }
    }
}

// sums += x[0] w[0] + .. + x[n - 1] w[n - 1], rows of W `out` apart.
static inline __attribute__((always_inline)) void
tr__few_rows_add(const float *x, const tr_real *w, int64_t out, const int n,
                 int64_t count, float *sums) {
    for (int64_t o = 0; o < count; o += TR_VW) {
        int left = tr_v_left(count, o);
        float part[TR_VW];
        tr_vf sum =
            left == TR_VW ? tr_v_load(sums + o) : tr_v_load_part(sums + o, left, 0);
        for (int k = 0; k < n; k++) {
            sum += tr_v_load_some_r(w + k * out + o, left) * x[k];
        }
        if (left == TR_VW) {
            tr_v_store(sums + o, sum);
        } else {
            tr_v_store(part, sum);
            memcpy(sums + o, part, (size_t)left * sizeof *part);
        }
    }
}

static inline void tr__few_rows_columns(const tr_few_rows *p, tr_range outputs) {
    int64_t count = outputs.end - outputs.begin, pitch = p->in + TR_VW, i = 0;
    const tr_real *w = p->w + outputs.begin;
    for (int64_t r = 0; r < p->rows && count > 0; r++) {
        memset(p->sums + r * p->out + outputs.begin, 0, (size_t)count * sizeof(float));
    }
    for (; i + 4 <= p->in; i += 4) {
        for (int64_t r = 0; r < p->rows; r++) {
            tr__few_rows_add(p->wide + r * pitch + i, w + i * p->out, p->out, 4, count,
                             p->sums + r * p->out + outputs.begin);
        }
    }
    for (; i < p->in; i++) {
        for (int64_t r = 0; r < p->rows; r++) {
            tr__few_rows_add(p->wide + r * pitch + i, w + i * p->out, p->out, 1, count,
                             p->sums + r * p->out + outputs.begin);
        }
    }
}

static inline void tr__few_rows_finish(const tr_few_rows *p, tr_range outputs) {
    for (int64_t r = 0; r < p->rows; r++) {
        for (int64_t o = outputs.begin; o < outputs.end; o++) {
            float value = p->sums[r * p->out + o];
            value += p->bias ? tr_r_get(p->bias[o]) : 0;
            value = p->relu && value < 0 ? 0 : value; // NaN stays
            if (p->y) {
                p->y[r * p->out + o] = tr_r_of(value);
            } else {
                p->y_f32[r * p->out + o] = value;
            }
        }
    }
}

static inline void tr__few_rows_part(const void *data, int part, int parts) {
    const tr_few_rows *p = data;
    tr_range outputs = tr__range_part(p->out, TR_FEW_LINE, part, parts);
    if (p->in_out) {
        tr__few_rows_columns(p, outputs);
    } else {
        tr__few_rows_dots(p, outputs);
    }
    tr__few_rows_finish(p, outputs);
}

// Rows of x in f32, each with room for a vector behind it.
static inline void tr__few_rows_widen(tr_few_rows *p) {
    int64_t pitch = p->in + TR_VW;
    for (int64_t r = 0; r < p->rows; r++) {
        for (int64_t i = 0; i < p->in; i += TR_VW) {
            tr_vf v = tr_v_load_some_r(p->x + r * p->in + i, tr_v_left(p->in, i));
            tr_v_store(p->space + r * pitch + i, v);
        }
    }
    p->wide = p->space;
    p->sums = p->space + p->rows * pitch;
}

// The sums do not depend on the number of threads.
static inline void tr__few_rows_run(tr_few_rows product, int threads) {
    tr__few_rows_widen(&product);
    threads = tr__threads_for(product.in * product.out, 1, threads);
    tr__parts_run(threads, tr__few_rows_part, &product);
}

#endif
