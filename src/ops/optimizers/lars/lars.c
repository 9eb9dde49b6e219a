// LARS (You, Gitman, Ginsburg, arXiv 1708.03888, algorithm 1):
//
//     g = grad_scale * grad
//     trust = trust_coefficient * norm(p) / (norm(g) + weight_decay * norm(p) + eps)
//     b = momentum * b + lr * trust * (g + weight_decay * p)   (b begins as 0)
//     p = p - b
//
// norms being of the whole tensor; trust is 1 where one is 0. As in the paper, and
// other than in SGD, the rate is in the buffer. With Nesterov's momentum p takes
// momentum * b + lr * trust * (g + weight_decay * p) in place of b. Without momentum
// the buffer is neither read nor written.
#include "ops/optimizers/lars/lars.h"

static double trust(const tr_hyper *hyper, double param_norm, double grad_norm) {
    return tr__lars_trust(param_norm, grad_norm, tr__lars_ratio(hyper));
}

static const tr_adaptation adaptation = {
    .reference = tr__lars_direct_reference,
    .trust = trust,
};

const tr_optimizer tr__optimizer_lars = {
    .name = "lars",
    .number = 6,
    .state_count = 1,
    .states = {{.name = "momentum_buffer"}},
    .flops_per_element = 12,
    .reference = tr__lars_reference,
    .adaptation = &adaptation,
};
