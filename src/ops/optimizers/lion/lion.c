// Lion (Chen et al., arXiv 2302.06675, algorithm 2):
//
//     g = grad_scale * grad
//     p = p * (1 - lr * weight_decay) - lr * sign(beta1 * m + (1 - beta1) * g)
//     m = beta2 * m + (1 - beta2) * g
//
// sign(0) is 0, as in the paper: what has never had a gradient stays where it is.
// (DeepSpeed 0.19's kernels move it by the rate, its GPU's and its CPU's not in the
// same direction.)
#include "ops/optimizers/lion/lion.h"

const tr_optimizer tr__optimizer_lion = {
    .name = "lion",
    .number = 3,
    .state_count = 1,
    .states = {{.name = "exp_avg"}},
    .flops_per_element = 9,
    .reference = tr__lion_reference,
    .has_betas = true,
};
