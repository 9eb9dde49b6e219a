// Texts have few labels: there is no work for several threads, nor for vectors.
#include "backend/cpu/isa.h"
#include "backend/cpu/real.h"
#include "ops/nn/element_loss/element.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__element_loss_kernel);
extern const tr_kernel TR_ISA_NAME(tr__element_loss_backward_kernel);
extern const tr_kernel TR_ISA_NAME(tr__element_logits_kernel);

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_element_loss_kind kind = tr__element_kind(desc);
    const tr_real *x = launch->in[0];     // [count]
    const float *targets = launch->in[1]; // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        tr__element_add(kind, tr_r_get(x[i]), targets[i], launch->out[0]);
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_element_loss_kind kind = tr__element_kind(desc);
    const tr_real *x = launch->in[0];     // [count]
    const float *targets = launch->in[1]; // [count]
    tr_real *dx = launch->out[0];         // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    double seed = launch->run->loss_seed;
    for (int64_t i = 0; i < count; i++) {
        double at = tr_r_get(x[i]), t = targets[i];
        if (dx) { // else the sums alone are wanted
            double slope = isnan(t) ? 0 : tr__element_slope(kind, at, t) * seed;
            double before = launch->accumulate & 1 ? tr_r_get(dx[i]) : 0;
            dx[i] = tr_r_of((float)(before + slope));
        }
        tr__element_add(kind, at, t, launch->out[1]);
    }
}

static void logits(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0]; // [count]
    float *y = launch->out[0];        // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        y[i] = tr_r_get(x[i]);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__element_supports(desc, TR_REAL);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 40, out);
}

const tr_kernel TR_ISA_NAME(tr__element_loss_kernel) = {
    .name = "element_loss.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = forward,
};

const tr_kernel TR_ISA_NAME(tr__element_loss_backward_kernel) = {
    .name = "element_loss_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = backward,
};

const tr_kernel TR_ISA_NAME(tr__element_logits_kernel) = {
    .name = "element_logits.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = logits,
};
