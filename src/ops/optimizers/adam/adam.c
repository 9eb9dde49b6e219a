// Adam (Kingma and Ba, arXiv 1412.6980) and AdamW (Loshchilov and Hutter, arXiv
// 1711.05101), in the form in which PyTorch computes them:
//
//     g = grad_scale * grad          (+ weight_decay * p when not decoupled)
//     p = p * (1 - lr * weight_decay)                      when decoupled
//     m = m + (1 - beta1) * (g - m)
//     v = beta2 * v + (1 - beta2) * g^2
//     p = p - lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps)
#include "ops/optimizers/adam/adam.h"

#include <stdio.h>

// eps / sqrt(k) (Malladi et al. 2022, arXiv 2205.10287); and weight_decay sqrt(k) where
// it is decoupled, which is our addition: lr * weight_decay then grows with k, and the
// decay of a sample stays what it was.
static void scale(tr_hyper *hyper, double factor, char *said) {
    const tr_adam_hyper was = tr__adam_hyper(hyper);
    double decay = hyper->weight_decay;
    tr_adam_hyper own = was;
    own.eps /= sqrt(factor);
    if (own.decoupled) {
        hyper->weight_decay *= sqrt(factor);
    }
    memcpy(hyper->own, &own, sizeof own);
    if (said) {
        snprintf(said, TR_SCALED_TEXT, "eps %g becomes %g; weight_decay %g becomes %g",
                 was.eps, own.eps, decay, hyper->weight_decay);
    }
}

const tr_optimizer tr__optimizer_adam = {
    .name = "adam",
    .number = 1,
    .state_count = 2,
    .states = {{.name = "exp_avg"}, {.name = "exp_avg_sq", .positive = true}},
    .flops_per_element = 14,
    .reference = tr__adam_reference,
    .has_betas = true,
    .scale = scale,
};
