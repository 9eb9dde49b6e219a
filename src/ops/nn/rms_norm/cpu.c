#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/rms_norm/rms_norm.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__rms_norm_kernel);
extern const tr_kernel TR_ISA_NAME(tr__rms_norm_backward_kernel);

enum { WEIGHT = 2, BACKWARD_WEIGHT = 3, LINE = 16 };

// ---- forward

// x, weight, y: [width]. Returns 1 / the root mean square.
static float norm_row(const tr_real *x, const tr_real *weight, float epsilon,
                      tr_real *y, int64_t width, bool add) {
    tr_vf squares = tr_v_set(0);
    for (int64_t c = 0; c < width; c += TR_VW) {
        tr_vf v = tr_v_load_some_r(x + c, tr_v_left(width, c));
        squares += v * v;
    }
    float rstd = 1 / sqrtf(tr_v_sum(squares) / (float)width + epsilon);
    for (int64_t c = 0; y && c < width; c += TR_VW) {
        int count = tr_v_left(width, c);
        tr_vf v =
            tr_v_load_some_r(x + c, count) * rstd * tr_v_load_some_r(weight + c, count);
        tr_v_put_some_r(y + c, v, count, add);
    }
    return rstd;
}

// x, y: [width]; rstds: [heads]. y and rstds may be NULL.
static void norm_heads(const tr_rms_norm_sizes *s, const tr_real *x,
                       const tr_real *weight, tr_real *y, float *rstds,
                       uint32_t accumulate) {
    bool add = accumulate & 1;
    for (int64_t h = 0; h < s->heads; h++) {
        int64_t at = h * s->depth;
        float rstd = norm_row(x + at, weight + tr__rms_norm_weight(s, h), s->epsilon,
                              y ? y + at : NULL, s->depth, add);
        if (rstds) {
            rstds[h] = accumulate >> 1 & 1 ? rstds[h] + rstd : rstd;
        }
    }
    int64_t end = s->heads * s->depth;
    if (y && end < s->width) {
        tr_v_map2(tr_v_first, x + end, x + end, y + end, s->width - end, add);
    }
}

static void launch_norm(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rms_norm_sizes s = tr__rms_norm_sizes(desc->in[0].shape, desc->attr);
    const tr_real *x = launch->in[0], *weight = launch->in[1]; // [rows, width]
    tr_real *y = launch->out[0];                               // [rows, width]
    float *rstds = launch->out[1];                             // [rows, heads]
    int threads = tr__threads_for(s.rows * s.width, WEIGHT, desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < s.rows; r++) {
        norm_heads(&s, x + r * s.width, weight, y ? y + r * s.width : NULL,
                   rstds ? rstds + r * s.heads : NULL, launch->accumulate);
    }
}

// ---- backward

// Of one set of weights, of which a thread sums the gradient by itself.
static int64_t padded(const tr_rms_norm_sizes *s) {
    return (s->depth + LINE - 1) / LINE * LINE;
}

static int64_t thread_floats(const tr_rms_norm_sizes *s) {
    return padded(s) * (s->weights / s->depth);
}

static int backward_threads(const tr_op_desc *desc) {
    return tr__threads_for(tr_shape_count(desc->in[0].shape), BACKWARD_WEIGHT,
                           desc->target.workers);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_rms_norm_sizes s = tr__rms_norm_sizes(desc->in[0].shape, desc->attr);
    return (size_t)(backward_threads(desc) * thread_floats(&s)) * sizeof(float);
}

// dx = rstd (dy w - xn mean(dy w xn)), xn = x rstd. dweight: [width, padded to whole
// vectors], added to.
static void backward_row(const tr_real *dy, const tr_real *x, float rstd,
                         const tr_real *weight, tr_real *dx, float *dweight,
                         int64_t width, bool add) {
    tr_vf along = tr_v_set(0);
    for (int64_t c = 0; c < width; c += TR_VW) {
        int count = tr_v_left(width, c);
        tr_vf part =
            tr_v_load_some_r(dy + c, count) * tr_v_load_some_r(x + c, count) * rstd;
        along += part * tr_v_load_some_r(weight + c, count);
        tr_v_store(dweight + c, tr_v_load(dweight + c) + part);
    }
    float mean = tr_v_sum(along) / (float)width;
    for (int64_t c = 0; dx && c < width; c += TR_VW) {
        int count = tr_v_left(width, c);
        tr_vf normal = tr_v_load_some_r(x + c, count) * rstd;
        tr_vf v =
            (tr_v_load_some_r(dy + c, count) * tr_v_load_some_r(weight + c, count) -
             normal * mean) *
            rstd;
        tr_v_put_some_r(dx + c, v, count, add);
    }
}

// dweight: [thread_floats]
static void backward_rows(const tr_rms_norm_sizes *s, const tr_launch *launch,
                          tr_range range, float *dweight) {
    const tr_real *dy = launch->in[0], *x = launch->in[1]; // [rows, width]
    const float *rstd = launch->in[2];                     // [rows, heads]
    const tr_real *weight = launch->in[3];
    tr_real *dx = launch->out[0]; // [rows, width]
    bool add = launch->accumulate & 1;
    int64_t end = s->heads * s->depth;
    memset(dweight, 0, (size_t)thread_floats(s) * sizeof *dweight);
    for (int64_t r = range.begin; r < range.end; r++) {
        for (int64_t h = 0; h < s->heads; h++) {
            int64_t at = r * s->width + h * s->depth, w = tr__rms_norm_weight(s, h);
            backward_row(dy + at, x + at, rstd[r * s->heads + h], weight + w,
                         dx ? dx + at : NULL, dweight + w / s->depth * padded(s),
                         s->depth, add);
        }
        if (dx && end < s->width) {
            int64_t at = r * s->width + end;
            tr_v_map2(tr_v_first, dy + at, dy + at, dx + at, s->width - end, add);
        }
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_rms_norm_sizes s = tr__rms_norm_sizes(desc->in[0].shape, desc->attr);
    float *parts = launch->workspace, *dweight = launch->out[1];
    int threads = backward_threads(desc);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        backward_rows(&s, launch, tr__range_part(s.rows, 1, t, threads),
                      parts + t * thread_floats(&s));
    }
    for (int64_t c = 0; dweight && c < s.weights; c++) {
        int64_t at = c / s.depth * padded(&s) + c % s.depth;
        float sum = 0;
        for (int t = 0; t < threads; t++) {
            sum += parts[t * thread_floats(&s) + at];
        }
        dweight[c] = launch->accumulate >> 1 & 1 ? dweight[c] + sum : sum;
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 1 << 1); // rstd
}

static bool supports_backward(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 1 << 2, 1 << 1); // rstd; dweight
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 6, out);
}

const tr_kernel TR_ISA_NAME(tr__rms_norm_kernel) = {
    .name = "rms_norm.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_norm,
};

const tr_kernel TR_ISA_NAME(tr__rms_norm_backward_kernel) = {
    .name = "rms_norm_backward.cpu." TR_ISA_TEXT,
    .supports = supports_backward,
    .cost = cost,
    .workspace = workspace,
    .launch = launch_backward,
};
