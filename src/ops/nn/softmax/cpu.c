#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/softmax/softmax.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__softmax_kernel);
extern const tr_kernel TR_ISA_NAME(tr__softmax_backward_kernel);

// An element costs about as much as this many moved ones.
enum { SOFTMAX_WEIGHT = 8, BACKWARD_WEIGHT = 2 };

static float scale_of(const tr_op_desc *desc) {
    tr_softmax_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return attr.scale;
}

// What follows the last element is -infinity, and e^ of it nothing.
static tr_vf scaled(const tr_real *x, int left, float scale) {
    tr_vf v = tr_v_load_part_r(x, left, 0) * scale;
    for (int i = left; i < TR_VW; i++) {
        v[i] = -INFINITY;
    }
    return v;
}

static tr_vf load(const tr_real *x, int left, float scale) {
    return left == TR_VW ? tr_v_load_r(x) * scale : scaled(x, left, scale);
}

static void softmax_row(const tr_real *x, tr_real *y, int64_t width, float scale,
                        bool add) {
    tr_vf tops = tr_v_set(-INFINITY), sums = tr_v_set(0);
    for (int64_t i = 0; i < width; i += TR_VW) {
        tops = tr_v_max(load(x + i, tr_v_left(width, i), scale), tops);
    }
    tr_vf top = tr_v_set(tr_v_top(tops));
    for (int64_t i = 0; i < width; i += TR_VW) {
        sums += tr_v_exp(load(x + i, tr_v_left(width, i), scale) - top);
    }
    float factor = 1 / tr_v_sum(sums);
    for (int64_t i = 0; i < width; i += TR_VW) {
        int left = tr_v_left(width, i);
        tr_v_put_some_r(y + i, tr_v_exp(load(x + i, left, scale) - top) * factor, left,
                        add);
    }
}

static void backward_row(const tr_real *dy, const tr_real *y, tr_real *dx,
                         int64_t width, float scale, bool add) {
    tr_vf sums = tr_v_set(0);
    for (int64_t i = 0; i < width; i += TR_VW) {
        int left = tr_v_left(width, i);
        sums += tr_v_load_some_r(dy + i, left) * tr_v_load_some_r(y + i, left);
    }
    float sum = tr_v_sum(sums);
    for (int64_t i = 0; i < width; i += TR_VW) {
        int left = tr_v_left(width, i);
        tr_vf d = tr_v_load_some_r(dy + i, left) - sum;
        tr_v_put_some_r(dx + i, tr_v_load_some_r(y + i, left) * scale * d, left, add);
    }
}

static void launch_softmax(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0]; // [rows, width]
    tr_real *y = launch->out[0];      // [rows, width]
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    int threads = tr__threads_for(rows * width, SOFTMAX_WEIGHT, desc->target.workers);
    float scale = scale_of(desc);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        softmax_row(x + r * width, y + r * width, width, scale, add);
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    const tr_real *dy = launch->in[0], *y = launch->in[1]; // [rows, width]
    tr_real *dx = launch->out[0];                          // [rows, width]
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    int threads = tr__threads_for(rows * width, BACKWARD_WEIGHT, desc->target.workers);
    float scale = scale_of(desc);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        backward_row(dy + r * width, y + r * width, dx + r * width, width, scale, add);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 20, out);
}

const tr_kernel TR_ISA_NAME(tr__softmax_kernel) = {
    .name = "softmax.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_softmax,
};

const tr_kernel TR_ISA_NAME(tr__softmax_backward_kernel) = {
    .name = "softmax_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_backward,
};
