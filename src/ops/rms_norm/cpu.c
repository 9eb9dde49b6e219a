#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"
#include "ops/operand.h"
#include "ops/rms_norm/rms_norm.h"

#include <math.h>
#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__rms_norm_kernel);
extern const tr_kernel TR_ISA_NAME(tr__rms_norm_backward_kernel);

enum { WEIGHT = 2, BACKWARD_WEIGHT = 3, LINE = 16 };

static tr_vf load(const float *p, int count) {
    return count == TR_VW ? tr_v_load(p) : tr_v_load_part(p, count, 0);
}

static void store(float *p, tr_vf v, int count) {
    if (count == TR_VW) {
        tr_v_store(p, v);
    } else {
        tr_v_store_part(p, v, count);
    }
}

static int left_of(int64_t width, int64_t c) {
    return width - c < TR_VW ? (int)(width - c) : TR_VW;
}

// ---- forward

// x, weight, y: [width]. Returns 1 / the root mean square.
static float norm_row(const float *x, const float *weight, float epsilon, float *y,
                      int64_t width, bool add) {
    tr_vf squares = tr_v_set(0);
    for (int64_t c = 0; c < width; c += TR_VW) {
        tr_vf v = load(x + c, left_of(width, c));
        squares += v * v;
    }
    float rstd = 1 / sqrtf(tr_v_sum(squares) / (float)width + epsilon);
    for (int64_t c = 0; y && c < width; c += TR_VW) {
        int count = left_of(width, c);
        tr_vf v = load(x + c, count) * rstd * load(weight + c, count);
        store(y + c, add ? load(y + c, count) + v : v, count);
    }
    return rstd;
}

static void launch_norm(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rms_norm_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    const float *x = launch->in[0], *weight = launch->in[1]; // [rows, width], [width]
    float *y = launch->out[0], *rstds = launch->out[1];      // [rows, width], [rows]
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    int threads = tr__threads_for(rows * width, WEIGHT, desc->threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        float rstd = norm_row(x + r * width, weight, attr.epsilon,
                              y ? y + r * width : NULL, width, launch->accumulate & 1);
        if (rstds) {
            rstds[r] = launch->accumulate >> 1 & 1 ? rstds[r] + rstd : rstd;
        }
    }
}

// ---- backward

static int64_t padded(int64_t width) {
    return (width + LINE - 1) / LINE * LINE;
}

static int backward_threads(const tr_op_desc *desc) {
    return tr__threads_for(tr_shape_count(desc->in[0].shape), BACKWARD_WEIGHT,
                           desc->threads);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    int64_t width = padded(tr__shape_width(desc->in[0].shape));
    return (size_t)(backward_threads(desc) * width) * sizeof(float);
}

// dx = rstd (dy w - xn mean(dy w xn)), xn = x rstd. dweight: [width], added to.
static void backward_row(const float *dy, const float *x, float rstd,
                         const float *weight, float *dx, float *dweight, int64_t width,
                         bool add) {
    tr_vf along = tr_v_set(0);
    for (int64_t c = 0; c < width; c += TR_VW) {
        int count = left_of(width, c);
        tr_vf part = load(dy + c, count) * load(x + c, count) * rstd;
        along += part * load(weight + c, count);
        store(dweight + c, load(dweight + c, count) + part, count);
    }
    float mean = tr_v_sum(along) / (float)width;
    for (int64_t c = 0; dx && c < width; c += TR_VW) {
        int count = left_of(width, c);
        tr_vf normal = load(x + c, count) * rstd;
        tr_vf v =
            (load(dy + c, count) * load(weight + c, count) - normal * mean) * rstd;
        store(dx + c, add ? load(dx + c, count) + v : v, count);
    }
}

static void backward_rows(const tr_op_desc *desc, const tr_launch *launch,
                          tr_range range, float *dweight) {
    const float *dy = launch->in[0], *x = launch->in[1];        // [rows, width]
    const float *rstd = launch->in[2], *weight = launch->in[3]; // [rows], [width]
    float *dx = launch->out[0];
    int64_t width = tr__shape_width(desc->in[0].shape);
    memset(dweight, 0, (size_t)padded(width) * sizeof *dweight);
    for (int64_t r = range.begin; r < range.end; r++) {
        backward_row(dy + r * width, x + r * width, rstd[r], weight,
                     dx ? dx + r * width : NULL, dweight, width,
                     launch->accumulate & 1);
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    float *parts = launch->workspace, *dweight = launch->out[1];
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    int threads = backward_threads(desc);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        backward_rows(desc, launch, tr__range_part(rows, 1, t, threads),
                      parts + t * padded(width));
    }
    for (int64_t c = 0; dweight && c < width; c++) {
        float sum = 0;
        for (int t = 0; t < threads; t++) {
            sum += parts[t * padded(width) + c];
        }
        dweight[c] = launch->accumulate >> 1 & 1 ? dweight[c] + sum : sum;
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 6, out);
}

const tr_kernel TR_ISA_NAME(tr__rms_norm_kernel) = {
    .name = "rms_norm.cpu." TR_ISA_TEXT,
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_norm,
};

const tr_kernel TR_ISA_NAME(tr__rms_norm_backward_kernel) = {
    .name = "rms_norm_backward.cpu." TR_ISA_TEXT,
    .supports = tr__desc_f32,
    .cost = cost,
    .workspace = workspace,
    .launch = launch_backward,
};
