#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/dropout/cpu_mask.h"
#include "ops/nn/layer_norm/layer_norm.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel TR_ISA_NAME(tr__layer_norm_kernel);
extern const tr_kernel TR_ISA_NAME(tr__residual_norm_kernel);

enum {
    FORWARD_WEIGHT = 2, // an element costs about as much as this many moved ones
    LINE = 64 / (int)sizeof(tr_real), // in a cache line
};

// Where a norm's results go; each may be NULL. The bits of `accumulate` are in the
// order y, mean, rstd.
typedef struct tr_norm_out {
    tr_real *y;         // [rows, width]
    float *mean, *rstd; // [rows]
    uint32_t accumulate;
} tr_norm_out;

// The sum of (x - shift)^power over a row, power 1 or 2; x: [width].
__attribute__((always_inline)) static inline float
moment(const tr_real *x, int64_t width, float shift, int power) {
    tr_vf sums[4] = {{0}, {0}, {0}, {0}}; // four, to not wait for the last addition
    int64_t c = 0;
    for (; c + 4 * TR_VW <= width; c += 4 * TR_VW) {
        for (int k = 0; k < 4; k++) {
            tr_vf d = tr_v_load_r(x + c + k * TR_VW) - shift;
            sums[k] += power == 2 ? d * d : d;
        }
    }
    for (; c + TR_VW <= width; c += TR_VW) {
        tr_vf d = tr_v_load_r(x + c) - shift;
        sums[0] += power == 2 ? d * d : d;
    }
    if (c < width) {
        tr_vf d = tr_v_load_part_r(x + c, (int)(width - c), shift) - shift;
        sums[1] += power == 2 ? d * d : d;
    }
    return tr_v_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

static inline tr_vf scaled(tr_vf x, float mean, float rstd, tr_vf w, tr_vf b) {
    return (x - mean) * rstd * w + b;
}

// x, w, b, y: [width]
static void scale_row(const tr_real *x, float mean, float rstd, const tr_real *w,
                      const tr_real *b, tr_real *y, int64_t width, bool add) {
    int64_t c = 0;
    for (; c + TR_VW <= width; c += TR_VW) {
        tr_vf value = scaled(tr_v_load_r(x + c), mean, rstd, tr_v_load_r(w + c),
                             tr_v_load_r(b + c));
        tr_v_store_r(y + c, add ? tr_v_load_r(y + c) + value : value);
    }
    int rest = (int)(width - c);
    if (rest > 0) {
        tr_vf value =
            scaled(tr_v_load_part_r(x + c, rest, 0), mean, rstd,
                   tr_v_load_part_r(w + c, rest, 0), tr_v_load_part_r(b + c, rest, 0));
        value = add ? tr_v_load_part_r(y + c, rest, 0) + value : value;
        tr_v_store_part_r(y + c, value, rest);
    }
}

// Normalizes one row, x [width]: the mean, then the squares around it, while the row is
// in the cache. The fused and the plain norm both call it, never inlined, so they give
// the same bits.
__attribute__((noinline)) static void norm_row(const tr_real *x, const tr_real *w,
                                               const tr_real *b, float epsilon,
                                               int64_t width, int64_t row,
                                               const tr_norm_out *out) {
    float mean = moment(x, width, 0, 1) / (float)width;
    float variance = moment(x, width, mean, 2) / (float)width;
    float rstd = 1.0f / sqrtf(variance + epsilon);
    if (out->y) {
        scale_row(x, mean, rstd, w, b, out->y + row * width, width,
                  out->accumulate & 1);
    }
    if (out->mean) {
        out->mean[row] = out->accumulate & 2 ? out->mean[row] + mean : mean;
    }
    if (out->rstd) {
        out->rstd[row] = out->accumulate & 4 ? out->rstd[row] + rstd : rstd;
    }
}

static void launch_layer_norm(const tr_op_desc *desc, void *state,
                              const tr_launch *launch) {
    (void)state;
    const tr_layer_norm_attr *attr = (const void *)desc->attr;
    const tr_real *x = launch->in[0];                     // [rows, width]
    const tr_real *w = launch->in[1], *b = launch->in[2]; // [width]
    int64_t width = tr__shape_width(desc->in[0].shape);
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    tr_norm_out out = {launch->out[0], launch->out[1], launch->out[2],
                       launch->accumulate};
    int threads = tr__threads_for(rows * width, FORWARD_WEIGHT, desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(rows, 1, t, threads);
        for (int64_t row = r.begin; row < r.end; row++) {
            norm_row(x + row * width, w, b, attr->epsilon, width, row, &out);
        }
    }
}

// One thread's rows of s = r + dropout(x), y = norm(s). Where s is added to, the row
// that is normalized is made in `spare` [width].
static void residual_norm_rows(const tr_op_desc *desc, const tr_launch *launch,
                               tr_range range, tr_real *spare) {
    const tr_layer_norm_attr *attr = (const void *)desc->attr;
    const tr_real *r = launch->in[0], *x = launch->in[1]; // [rows, width]
    const tr_real *w = launch->in[2], *b = launch->in[3]; // [width]
    tr_real *s = launch->out[0];                          // [rows, width]
    int64_t width = tr__shape_width(desc->in[0].shape);
    tr_mask mask = tr__mask_open(&attr->dropout, launch->run, desc->in[0].shape);
    tr_norm_out out = {launch->out[1], launch->out[2], launch->out[3],
                       launch->accumulate >> 1};
    bool aside = !s || launch->accumulate & 1;
    for (int64_t row = range.begin; row < range.end; row++) {
        int64_t at = row * width;
        tr_real *to = aside ? spare : s + at;
        if (attr->dropout.probability > 0) {
            tr__mask_apply(&mask, at, width, r + at, x + at, to, false);
        } else {
            tr_v_map2(tr_v_add, r + at, x + at, to, width, false);
        }
        norm_row(to, w, b, attr->epsilon, width, row, &out);
        if (s && aside) {
            tr_v_map2(tr_v_first, spare, spare, s + at, width, true);
        }
    }
}

static int residual_threads(const tr_op_desc *desc) {
    const tr_layer_norm_attr *attr = (const void *)desc->attr;
    return tr__threads_for(tr_shape_count(desc->in[0].shape),
                           attr->dropout.probability > 0 ? TR_MASK_WEIGHT
                                                         : FORWARD_WEIGHT,
                           desc->target.workers);
}

// Elements of one thread's spare row; threads share no cache line.
static int64_t spare_width(const tr_op_desc *desc) {
    bool needed = desc->out[0].dtype == TR_NONE || desc->accumulate & 1;
    int64_t width = tr__shape_width(desc->in[0].shape);
    return needed ? (width + LINE - 1) / LINE * LINE : 0;
}

static void launch_residual_norm(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    (void)state;
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t spare = spare_width(desc);
    tr_real *spares = launch->workspace; // [threads, spare]
    int threads = residual_threads(desc);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        residual_norm_rows(desc, launch, tr__range_part(rows, 1, t, threads),
                           spare ? spares + t * spare : NULL);
    }
}

static size_t residual_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)(residual_threads(desc) * spare_width(desc)) * sizeof(tr_real);
}

// The mean and 1 / deviation of a row are f32.
static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 1 << 1 | 1 << 2);
}

static bool residual_supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 1 << 2 | 1 << 3);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 8, out);
}

static void residual_cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 9, out);
}

const tr_kernel TR_ISA_NAME(tr__layer_norm_kernel) = {
    .name = "layer_norm.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_layer_norm,
};

const tr_kernel TR_ISA_NAME(tr__residual_norm_kernel) = {
    .name = "residual_norm.cpu." TR_ISA_TEXT,
    .supports = residual_supports,
    .cost = residual_cost,
    .workspace = residual_workspace,
    .launch = launch_residual_norm,
};
