#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "backend/cpu/simd_math.h"
#include "ops/nn/swiglu/swiglu.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__swiglu_kernel);
extern const tr_kernel TR_ISA_NAME(tr__swiglu_backward_kernel);

// A value costs about as much as this many moved ones.
enum { WEIGHT = 4, BACKWARD_WEIGHT = 6 };

typedef struct row {
    const tr_real *dy, *gate, *up; // [I]
    tr_real *dgate, *dup;          // [I]
} row;

static tr_vf gated(tr_vf gate, tr_vf up) {
    return gate * tr_v_sigmoid(gate) * up;
}

// silu'(x) = s + x s (1 - s), where s is the logistic function of x.
static void backward_row(const row *at, int64_t width, bool add) {
    for (int64_t i = 0; i < width; i += TR_VW) {
        int count = tr_v_left(width, i);
        tr_vf dy = tr_v_load_some_r(at->dy + i, count),
              gate = tr_v_load_some_r(at->gate + i, count);
        tr_vf s = tr_v_sigmoid(gate), silu = gate * s;
        tr_vf slope = s + silu * (1 - s);
        tr_v_put_some_r(at->dgate + i, dy * tr_v_load_some_r(at->up + i, count) * slope,
                        count, add);
        tr_v_put_some_r(at->dup + i, dy * silu, count, add);
    }
}

static void launch_swiglu(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    const tr_real *h = launch->in[0]; // [rows, 2 I]
    tr_real *y = launch->out[0];      // [rows, I]
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape) / 2;
    int threads = tr__threads_for(rows * width, WEIGHT, desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        const tr_real *gate = h + r * 2 * width;
        tr_v_map2(gated, gate, gate + width, y + r * width, width,
                  launch->accumulate & 1);
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    const tr_real *dy = launch->in[0], *h = launch->in[1]; // [rows, I], [rows, 2 I]
    tr_real *dh = launch->out[0];                          // [rows, 2 I]
    int64_t rows = tr__shape_rows(desc->in[1].shape);
    int64_t width = tr__shape_width(desc->in[1].shape) / 2;
    int threads = tr__threads_for(rows * width, BACKWARD_WEIGHT, desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        int64_t first = r * 2 * width;
        row at = {.dy = dy + r * width,
                  .gate = h + first,
                  .up = h + first + width,
                  .dgate = dh + first,
                  .dup = dh + first + width};
        backward_row(&at, width, launch->accumulate & 1);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 25, out);
}

const tr_kernel TR_ISA_NAME(tr__swiglu_kernel) = {
    .name = "swiglu.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_swiglu,
};

const tr_kernel TR_ISA_NAME(tr__swiglu_backward_kernel) = {
    .name = "swiglu_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_backward,
};
