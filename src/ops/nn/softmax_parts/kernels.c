// A few additions for each row, so there is one kernel for all.
#include "ops/nn/softmax_parts/operands.h"

extern const tr_kernel tr__softmax_part_kernel, tr__softmax_part_backward_kernel;
extern const tr_kernel tr__softmax_join_kernel, tr__softmax_join_backward_kernel;

// ---- parts

static void launch_part(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_softmax_parts_sizes s = tr__softmax_part_sizes(desc);
    const double *running = launch->in[0]; // [rows, RUNNING]
    const float *best = launch->in[1];     // [rows, BEST]
    float *parts = launch->out[0];         // [rows, ranks, PART]
    bool add = launch->accumulate & 1;
    (void)state;
    for (int64_t r = 0; r < s.rows; r++) {
        double lse = running[r * RUNNING + RUNNING_LSE];
        const double own[PART] = {
            lse, tr__parts_rest(lse), running[r * RUNNING + RUNNING_PICKED],
            best[r * BEST + BEST_LOGIT], best[r * BEST + BEST_IS_TARGET]};
        for (int64_t i = 0; i < s.ranks * PART; i++) {
            double value = i / PART == s.rank ? own[i % PART] : 0;
            tr__parts_put(&parts[r * s.ranks * PART + i], value, add);
        }
    }
}

static void launch_part_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    tr_softmax_parts_sizes s = tr__softmax_part_sizes(desc);
    const float *dparts = launch->in[0]; // [rows, ranks, PART]
    double *drunning = launch->out[0];   // [rows, RUNNING]
    bool add = launch->accumulate & 1;
    (void)state;
    for (int64_t r = 0; r < s.rows; r++) {
        const float *own = dparts + (r * s.ranks + s.rank) * PART;
        tr__parts_put_double(&drunning[r * RUNNING + RUNNING_LSE], own[PART_LSE], add);
        tr__parts_put_double(&drunning[r * RUNNING + RUNNING_PICKED], own[PART_PICKED],
                             add);
    }
}

// ---- joined

static void launch_join(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_softmax_parts_sizes s = tr__softmax_join_sizes(desc);
    const float *parts = launch->in[JOIN_PARTS]; // [rows, ranks, PART]
    double *running = launch->out[0];            // [rows, RUNNING] or NULL
    float *best = launch->out[1];                // [rows, BEST] or NULL
    (void)state;
    for (int64_t r = 0; r < s.rows; r++) {
        const float *row = parts + r * s.ranks * PART;
        if (running) {
            tr__parts_join_running(row, s.ranks, running + r * RUNNING,
                                   launch->accumulate & 1);
        }
        if (best) {
            tr__parts_join_best(row, s.ranks, best + r * BEST,
                                launch->accumulate >> 1 & 1);
        }
    }
}

static void launch_join_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    tr_softmax_parts_sizes s = tr__softmax_join_sizes(desc);
    const float *parts = launch->in[JOIN_PARTS];        // [rows, ranks, PART]
    const double *running = launch->in[JOIN_RUNNING];   // [rows, RUNNING]
    const double *drunning = launch->in[JOIN_DRUNNING]; // [rows, RUNNING]
    float *dparts = launch->out[0];                     // [rows, ranks, PART]
    bool add = launch->accumulate & 1;
    (void)state;
    for (int64_t i = 0; i < s.rows * s.ranks; i++) {
        int64_t r = i / s.ranks;
        const double *d = drunning + r * RUNNING;
        double share =
            exp(tr__parts_lse(parts + i * PART) - running[r * RUNNING + RUNNING_LSE]);
        const double own[PART] = {
            [PART_LSE] = d[RUNNING_LSE] * share, [PART_PICKED] = d[RUNNING_PICKED]};
        for (int k = 0; k < PART; k++) {
            tr__parts_put(&dparts[i * PART + k], own[k], add);
        }
    }
}

// ---- what they support and cost

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F64 || desc->in[0].dtype == TR_F32;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
    out->flops = (double)tr_shape_count(desc->in[0].shape);
}

const tr_kernel tr__softmax_part_kernel = {
    .name = "softmax_part", .supports = supports, .cost = cost, .launch = launch_part};

const tr_kernel tr__softmax_part_backward_kernel = {.name = "softmax_part_backward",
                                                    .supports = supports,
                                                    .cost = cost,
                                                    .launch = launch_part_backward};

const tr_kernel tr__softmax_join_kernel = {
    .name = "softmax_join", .supports = supports, .cost = cost, .launch = launch_join};

const tr_kernel tr__softmax_join_backward_kernel = {.name = "softmax_join_backward",
                                                    .supports = supports,
                                                    .cost = cost,
                                                    .launch = launch_join_backward};
