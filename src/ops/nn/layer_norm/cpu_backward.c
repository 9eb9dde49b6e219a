#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "ops/nn/layer_norm/layer_norm.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__layer_norm_backward_kernel);

enum {
    BACKWARD_WEIGHT = 3, // an element costs about as much as this many moved ones
    LINE = 16,           // floats in a cache line
};

// Sums over one row: of dy w, and of dy w times the normalized x.
typedef struct tr_row_sums {
    float plain, along;
} tr_row_sums;

typedef struct tr_row_stats {
    float mean, rstd;
} tr_row_stats;

// One vector of columns of one row: adds to the row's two sums, and to the columns'.
static inline void sum_vector(tr_vf dy, tr_vf x, tr_vf w, tr_row_stats stats,
                              tr_vf sums[2], tr_vf columns[2]) {
    tr_vf normal = (x - stats.mean) * stats.rstd, change = dy * w;
    sums[0] += change;
    sums[1] += change * normal;
    columns[0] += dy * normal;
    columns[1] += dy;
}

// dy, x, w: [width]; dweight, dbias: [width], added to.
static tr_row_sums sum_row(const tr_real *dy, const tr_real *x, const tr_real *w,
                           tr_row_stats stats, float *dweight, float *dbias,
                           int64_t width) {
    tr_vf sums[2] = {{0}, {0}}, columns[2];
    int64_t c = 0;
    for (; c + TR_VW <= width; c += TR_VW) {
        columns[0] = tr_v_load(dweight + c);
        columns[1] = tr_v_load(dbias + c);
        sum_vector(tr_v_load_r(dy + c), tr_v_load_r(x + c), tr_v_load_r(w + c), stats,
                   sums, columns);
        tr_v_store(dweight + c, columns[0]);
        tr_v_store(dbias + c, columns[1]);
    }
    int rest = (int)(width - c);
    if (rest > 0) {
        columns[0] = tr_v_load_part(dweight + c, rest, 0);
        columns[1] = tr_v_load_part(dbias + c, rest, 0);
        sum_vector(tr_v_load_part_r(dy + c, rest, 0), tr_v_load_part_r(x + c, rest, 0),
                   tr_v_load_part_r(w + c, rest, 0), stats, sums, columns);
        tr_v_store_part(dweight + c, columns[0], rest);
        tr_v_store_part(dbias + c, columns[1], rest);
    }
    return (tr_row_sums){tr_v_sum(sums[0]), tr_v_sum(sums[1])};
}

// dx = rstd (dy w - mean(dy w) - xn mean(dy w xn)), xn the normalized x.
static inline tr_vf slope(tr_vf dy, tr_vf x, tr_vf w, tr_row_stats stats,
                          tr_row_sums means) {
    tr_vf normal = (x - stats.mean) * stats.rstd;
    return (dy * w - means.plain - normal * means.along) * stats.rstd;
}

// dy, x, w, dx: [width]
static void slope_row(const tr_real *dy, const tr_real *x, const tr_real *w,
                      tr_row_stats stats, tr_row_sums sums, tr_real *dx, int64_t width,
                      bool add) {
    tr_row_sums means = {sums.plain / (float)width, sums.along / (float)width};
    int64_t c = 0;
    for (; c + TR_VW <= width; c += TR_VW) {
        tr_vf value = slope(tr_v_load_r(dy + c), tr_v_load_r(x + c), tr_v_load_r(w + c),
                            stats, means);
        tr_v_store_r(dx + c, add ? tr_v_load_r(dx + c) + value : value);
    }
    int rest = (int)(width - c);
    if (rest > 0) {
        tr_vf value =
            slope(tr_v_load_part_r(dy + c, rest, 0), tr_v_load_part_r(x + c, rest, 0),
                  tr_v_load_part_r(w + c, rest, 0), stats, means);
        value = add ? tr_v_load_part_r(dx + c, rest, 0) + value : value;
        tr_v_store_part_r(dx + c, value, rest);
    }
}

// Columns, padded so that threads share no cache line.
static int64_t padded(int64_t width) {
    return (width + LINE - 1) / LINE * LINE;
}

// One thread's rows; partial: [2, padded(width)], its sums for dweight and dbias.
static void backward_rows(const tr_op_desc *desc, const tr_launch *launch,
                          tr_range range, float *partial) {
    const tr_real *dy = launch->in[0], *x = launch->in[1];    // [rows, width]
    const float *mean = launch->in[2], *rstd = launch->in[3]; // [rows]
    const tr_real *w = launch->in[4];                         // [width]
    tr_real *dx = launch->out[0];                             // [rows, width] or NULL
    int64_t width = tr__shape_width(desc->in[0].shape);
    memset(partial, 0, (size_t)(2 * padded(width)) * sizeof *partial);
    for (int64_t row = range.begin; row < range.end; row++) {
        tr_row_stats stats = {mean[row], rstd[row]};
        int64_t at = row * width;
        tr_row_sums sums =
            sum_row(dy + at, x + at, w, stats, partial, partial + padded(width), width);
        if (dx) {
            slope_row(dy + at, x + at, w, stats, sums, dx + at, width,
                      launch->accumulate & 1);
        }
    }
}

// Adds up the parts' columns [range.begin, range.end) of `which` (0: dweight, 1:
// dbias) in the order of parts.
static void reduce_columns(const float *partials, int parts, int64_t width, int which,
                           tr_range range, float *out, bool add) {
    for (int64_t c = range.begin; c < range.end; c++) {
        float sum = 0;
        for (int part = 0; part < parts; part++) {
            sum += partials[(2 * part + which) * padded(width) + c];
        }
        out[c] = add ? out[c] + sum : sum;
    }
}

static void reduce_part(const tr_op_desc *desc, const tr_launch *launch, int part,
                        int parts) {
    int64_t width = tr__shape_width(desc->in[0].shape);
    tr_range range = tr__range_part(width, LINE, part, parts);
    for (int which = 0; which < 2; which++) {
        if (launch->out[1 + which]) {
            reduce_columns(launch->workspace, parts, width, which, range,
                           launch->out[1 + which],
                           launch->accumulate >> (1 + which) & 1);
        }
    }
}

static int thread_count(const tr_op_desc *desc) {
    return tr__threads_for(tr_shape_count(desc->in[0].shape), BACKWARD_WEIGHT,
                           desc->target.workers);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t stride = 2 * padded(tr__shape_width(desc->in[0].shape));
    float *partials = launch->workspace; // [threads, 2, padded(width)]
    int threads = thread_count(desc);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for
        for (int t = 0; t < threads; t++) {
            backward_rows(desc, launch, tr__range_part(rows, 1, t, threads),
                          partials + t * stride);
        }
#pragma omp for
        for (int t = 0; t < threads; t++) {
            reduce_part(desc, launch, t, threads);
        }
    }
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    int64_t width = tr__shape_width(desc->in[0].shape);
    return (size_t)(thread_count(desc) * 2 * padded(width)) * sizeof(float);
}

// A row's mean and 1 / deviation are f32, and so are the gradients of the parameters.
static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 1 << 2 | 1 << 3, 1 << 1 | 1 << 2);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 15, out);
}

const tr_kernel TR_ISA_NAME(tr__layer_norm_backward_kernel) = {
    .name = "layer_norm_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .workspace = workspace,
    .launch = launch_backward,
};
