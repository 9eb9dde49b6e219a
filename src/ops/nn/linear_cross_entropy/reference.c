#include "ops/nn/linear_cross_entropy/reference_parts.h"

#include <math.h>

extern const tr_kernel tr__lce_reference, tr__lce_backward_reference,
    tr__lce_logits_reference, tr__lce_logits_rows_reference;

// logits: [V], becomes the softmax. Adds the row's loss to the sums.
static void softmax(double *logits, int64_t count, int32_t target, double *sums) {
    int64_t best = 0;
    double total = 0;
    for (int64_t v = 1; v < count; v++) {
        best = logits[v] > logits[best] ? v : best;
    }
    double top = logits[best], wanted = logits[target];
    for (int64_t v = 0; v < count; v++) {
        logits[v] = exp(logits[v] - top);
        total += logits[v];
    }
    for (int64_t v = 0; v < count; v++) {
        logits[v] /= total;
    }
    sums[TR_SUM_LOSS] += top + log(total) - wanted;
    sums[TR_SUM_COUNT] += 1;
    sums[TR_SUM_CORRECT] += best == target;
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[HEAD_X];               // [rows, C]
    const int32_t *targets = launch->in[HEAD_TARGETS]; // [rows]
    double *logits = launch->workspace;                // [V]
    tr_linear_dims d = tr__lce_dims(desc);
    for (int64_t r = 0; r < d.rows; r++) {
        if (targets[r] >= 0) {
            tr__lce_reference_logits(&d, x + r * d.in, launch->in[HEAD_WEIGHT],
                                     launch->in[HEAD_BIAS], logits);
            softmax(logits, d.out, targets[r], launch->out[0]);
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
    const float *x = launch->in[HEAD_X];               // [rows, C]
    const int32_t *targets = launch->in[HEAD_TARGETS]; // [rows]
    tr_linear_dims d = tr__lce_dims(desc);
    memset(gradients, 0, (size_t)(d.rows * d.out) * sizeof *gradients);
    for (int64_t r = 0; r < d.rows; r++) {
        double *row = gradients + r * d.out;
        if (targets[r] < 0) {
            continue;
        }
        tr__lce_reference_logits(&d, x + r * d.in, launch->in[HEAD_WEIGHT],
                                 launch->in[HEAD_BIAS], row);
        softmax(row, d.out, targets[r], launch->out[HEAD_SUMS]);
        row[targets[r]] -= 1;
        for (int64_t v = 0; v < d.out; v++) {
            row[v] *= launch->run->loss_seed;
        }
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    double *gradients = launch->workspace; // [rows, V]
    logit_gradients(desc, launch, gradients);
    tr__lce_reference_put(desc, launch, gradients);
}

static size_t backward_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_linear_dims d = tr__lce_dims(desc);
    return (size_t)d.rows * (size_t)d.out * sizeof(double);
}

static void last_logits(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[HEAD_X];               // [rows, C]
    const int32_t *targets = launch->in[HEAD_TARGETS]; // [rows]
    float *out = launch->out[0];                       // [B, V]
    double *logits = launch->workspace;                // [V]
    tr_linear_dims d = tr__lce_dims(desc);
    int64_t samples = desc->in[HEAD_X].shape.dim[0], each = d.rows / samples;
    for (int64_t b = 0; b < samples; b++) {
        int64_t last = tr__lce_last_target(targets + b * each, each);
        memset(logits, 0, (size_t)d.out * sizeof *logits);
        if (last >= 0) {
            tr__lce_reference_logits(&d, x + (b * each + last) * d.in,
                                     launch->in[HEAD_WEIGHT], launch->in[HEAD_BIAS],
                                     logits);
        }
        for (int64_t v = 0; v < d.out; v++) {
            float *to = &out[b * d.out + v];
            *to = (float)(launch->accumulate & 1 ? *to + logits[v] : logits[v]);
        }
    }
}

static void all_logits(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[HEAD_X]; // [rows, C]
    float *out = launch->out[0];         // [rows, V]
    double *logits = launch->workspace;  // [V]
    tr_linear_dims d = tr__lce_dims(desc);
    for (int64_t r = 0; r < d.rows; r++) {
        tr__lce_reference_logits(&d, x + r * d.in, launch->in[HEAD_WEIGHT],
                                 launch->in[HEAD_BIAS], logits);
        for (int64_t v = 0; v < d.out; v++) {
            float *to = &out[r * d.out + v];
            *to = (float)(launch->accumulate & 1 ? *to + logits[v] : logits[v]);
        }
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__lce_supports(desc, TR_F32);
}

const tr_kernel tr__lce_reference = {
    .name = "head.reference",
    .supports = supports,
    .cost = tr__lce_forward_cost,
    .workspace = forward_workspace,
    .launch = forward,
};

const tr_kernel tr__lce_backward_reference = {
    .name = "head_backward.reference",
    .supports = supports,
    .cost = tr__lce_backward_cost,
    .workspace = backward_workspace,
    .launch = backward,
};

const tr_kernel tr__lce_logits_reference = {
    .name = "head_logits.reference",
    .supports = supports,
    .cost = tr__lce_logits_cost,
    .workspace = forward_workspace,
    .launch = last_logits,
};

const tr_kernel tr__lce_logits_rows_reference = {
    .name = "head_logits_rows.reference",
    .supports = supports,
    .cost = tr__lce_forward_cost,
    .workspace = forward_workspace,
    .launch = all_logits,
};
