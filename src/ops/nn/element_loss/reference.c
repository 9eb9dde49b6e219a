#include "ops/nn/element_loss/element.h"
#include "ops/operand.h"

extern const tr_kernel tr__element_loss_reference, tr__element_loss_backward_reference,
    tr__element_logits_reference;

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_element_loss_kind kind = tr__element_kind(desc);
    const float *x = launch->in[0], *targets = launch->in[1]; // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        tr__element_add(kind, x[i], targets[i], launch->out[0]);
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_element_loss_kind kind = tr__element_kind(desc);
    const float *x = launch->in[0], *targets = launch->in[1]; // [count]
    float *dx = launch->out[0];                               // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        double slope = isnan(targets[i]) ? 0
                                         : tr__element_slope(kind, x[i], targets[i]) *
                                               launch->run->loss_seed;
        if (dx) { // else the sums alone are wanted
            dx[i] = (float)(launch->accumulate & 1 ? dx[i] + slope : slope);
        }
        tr__element_add(kind, x[i], targets[i], launch->out[1]);
    }
}

static void logits(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    memcpy(launch->out[0], launch->in[0], (size_t)tr_tensor_bytes(desc->in[0]));
}

static bool supports(const tr_op_desc *desc) {
    return tr__element_supports(desc, TR_F32);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 40, out);
}

const tr_kernel tr__element_loss_reference = {
    .name = "element_loss.reference",
    .supports = supports,
    .cost = cost,
    .launch = forward,
};

const tr_kernel tr__element_loss_backward_reference = {
    .name = "element_loss_backward.reference",
    .supports = supports,
    .cost = cost,
    .launch = backward,
};

const tr_kernel tr__element_logits_reference = {
    .name = "element_logits.reference",
    .supports = supports,
    .cost = cost,
    .launch = logits,
};
