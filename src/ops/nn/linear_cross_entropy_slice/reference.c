#include "ops/nn/linear_cross_entropy/reference_parts.h"
#include "ops/nn/linear_cross_entropy_slice/operands.h"

#include <math.h>

extern const tr_kernel tr__lce_slice_reference, tr__lce_slice_backward_reference;

static void row_logits(const tr_op_desc *desc, const tr_launch *launch, int64_t r,
                       double *logits) {
    tr_linear_dims d = tr__lce_dims(desc);
    if (tr__lce_is_given_logits(desc)) {
        const float *given = launch->in[SLICE_GIVEN]; // [rows, ...]
        for (int64_t v = 0; v < d.out; v++) {
            logits[v] = given[r * tr__lce_logits_row(d.out) + v];
        }
        return;
    }
    tr__lce_reference_logits(&d, (const float *)launch->in[HEAD_X] + r * d.in,
                             launch->in[HEAD_WEIGHT], launch->in[HEAD_BIAS], logits);
}

// running, best: of one row, before and (now) after; before NULL: the first slice.
static void fold(const double *logits, int64_t classes, int64_t place,
                 const double *running, const float *best, double *running_now,
                 float *best_now) {
    int64_t top = -1;
    double most = -INFINITY; // NaN is never the best
    for (int64_t v = 0; v < classes; v++) {
        top = logits[v] > most ? v : top;
        most = logits[v] > most ? logits[v] : most;
    }
    bool ahead = !best || most > best[BEST_LOGIT];
    double shift = running ? fmax(running[RUNNING_LSE], most) : most;
    shift = shift > -INFINITY ? shift : 0; // else no power would be one
    double sum = running ? exp(running[RUNNING_LSE] - shift) : 0;
    for (int64_t v = 0; v < classes; v++) {
        sum += exp(logits[v] - shift);
    }
    running_now[RUNNING_LSE] = shift + log(sum);
    running_now[RUNNING_PICKED] =
        (running ? running[RUNNING_PICKED] : 0) + (place >= 0 ? logits[place] : 0);
    best_now[BEST_LOGIT] = ahead ? (float)most : best[BEST_LOGIT];
    best_now[BEST_IS_TARGET] = ahead ? top >= 0 && top == place : best[BEST_IS_TARGET];
}

// Of one row; logits NULL: it has no target.
static void keep(const tr_op_desc *desc, const tr_launch *launch, int64_t r,
                 const double *logits) {
    int64_t classes = tr__lce_dims(desc).out, row = tr__lce_logits_row(classes);
    float *kept = (float *)launch->out[SLICE_LOGITS] + r * row;
    memset(kept, 0, (size_t)row * sizeof *kept);
    for (int64_t v = 0; v < classes && logits; v++) {
        kept[v] = (float)logits[v];
    }
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const int32_t *targets = launch->in[HEAD_TARGETS]; // [rows]
    const double *running = launch->in[SLICE_BEFORE];  // [rows, RUNNING] or NULL
    const float *best = launch->in[SLICE_BEST];        // [rows, BEST] or NULL
    double *running_out = launch->out[SLICE_RUNNING];
    float *best_out = launch->out[SLICE_BEST_NOW];
    double *logits = launch->workspace; // [V]
    tr_linear_dims d = tr__lce_dims(desc);
    for (int64_t r = 0; r < d.rows; r++) {
        double running_now[RUNNING] = {0};
        float best_now[BEST] = {0};
        if (targets[r] >= 0) {
            row_logits(desc, launch, r, logits);
            fold(logits, d.out, tr__lce_slice_place(desc, targets[r]),
                 running ? running + r * RUNNING : NULL, best ? best + r * BEST : NULL,
                 running_now, best_now);
        }
        if (running_out) {
            memcpy(running_out + r * RUNNING, running_now, sizeof running_now);
        }
        if (best_out) {
            memcpy(best_out + r * BEST, best_now, sizeof best_now);
        }
        if (tr__lce_keeps_logits(desc)) {
            keep(desc, launch, r, targets[r] >= 0 ? logits : NULL);
        }
    }
}

static size_t forward_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)tr__lce_dims(desc).out * sizeof(double);
}

// gradients: [rows, V], of the logits
static void logit_gradients(const tr_op_desc *desc, const tr_launch *launch,
                            double *gradients) {
    const int32_t *targets = launch->in[HEAD_TARGETS]; // [rows]
    const double *after = launch->in[SLICE_AFTER];     // [rows, RUNNING]
    const double *dafter = launch->in[SLICE_DAFTER];   // [rows, RUNNING]
    tr_linear_dims d = tr__lce_dims(desc);
    memset(gradients, 0, (size_t)(d.rows * d.out) * sizeof *gradients);
    for (int64_t r = 0; r < d.rows; r++) {
        double *row = gradients + r * d.out;
        int64_t place = tr__lce_slice_place(desc, targets[r]);
        if (targets[r] < 0) {
            continue;
        }
        row_logits(desc, launch, r, row);
        for (int64_t v = 0; v < d.out; v++) {
            row[v] = dafter[r * RUNNING + RUNNING_LSE] *
                     exp(row[v] - after[r * RUNNING + RUNNING_LSE]);
        }
        row[place >= 0 ? place : 0] +=
            place >= 0 ? dafter[r * RUNNING + RUNNING_PICKED] : 0;
    }
}

static void put_before(const tr_op_desc *desc, const tr_launch *launch) {
    const int32_t *targets = launch->in[HEAD_TARGETS]; // [rows]
    const double *before = launch->in[SLICE_BEFORE];   // [rows, RUNNING]
    const double *after = launch->in[SLICE_AFTER];     // [rows, RUNNING]
    const double *dafter = launch->in[SLICE_DAFTER];   // [rows, RUNNING]
    double *dbefore = launch->out[SLICE_DBEFORE];      // [rows, RUNNING]
    bool add = launch->accumulate >> SLICE_DBEFORE & 1;
    for (int64_t r = 0; r < tr__lce_dims(desc).rows; r++) {
        const double *from = dafter + r * RUNNING;
        double *to = dbefore + r * RUNNING;
        bool there = targets[r] >= 0;
        double share = there ? exp(before[r * RUNNING] - after[r * RUNNING]) : 0;
        double lse = from[RUNNING_LSE] * share;
        double picked = there ? from[RUNNING_PICKED] : 0;
        to[RUNNING_LSE] = add ? to[RUNNING_LSE] + lse : lse;
        to[RUNNING_PICKED] = add ? to[RUNNING_PICKED] + picked : picked;
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    double *gradients = launch->workspace; // [rows, V]
    logit_gradients(desc, launch, gradients);
    tr__lce_reference_put(desc, launch, gradients);
    if (launch->out[SLICE_DBEFORE]) {
        put_before(desc, launch);
    }
}

static size_t backward_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_linear_dims d = tr__lce_dims(desc);
    return (size_t)d.rows * (size_t)d.out * sizeof(double);
}

static bool supports(const tr_op_desc *desc) {
    return tr__lce_slice_supports(desc, TR_F32);
}

static bool backward_supports(const tr_op_desc *desc) {
    return tr__lce_slice_backward_supports(desc, TR_F32);
}

const tr_kernel tr__lce_slice_reference = {
    .name = "head_slice.reference",
    .supports = supports,
    .cost = tr__lce_forward_cost,
    .workspace = forward_workspace,
    .launch = forward,
};

const tr_kernel tr__lce_slice_backward_reference = {
    .name = "head_slice_backward.reference",
    .supports = backward_supports,
    .cost = tr__lce_backward_cost,
    .workspace = backward_workspace,
    .launch = backward,
};
