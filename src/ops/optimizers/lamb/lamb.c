// LAMB (You et al., arXiv 1904.00962, algorithm 2):
//
//     g = grad_scale * grad
//     m = m + (1 - beta1) * (g - m)
//     v = beta2 * v + (1 - beta2) * g^2
//     u = m / (sqrt(v) + eps) + weight_decay * p
//     p = p - lr * trust * u,     trust = norm(p) / norm(u), of the whole tensor
//
// The paper has u of means that are corrected (m / (1 - beta1^t), v / (1 - beta2^t));
// its phi is here the identity. DeepSpeed 0.19 has u as written above, multiplies lr by
// sqrt(1 - beta2^t) / (1 - beta1^t), and keeps trust in [min_coeff, max_coeff]. In both
// trust is 1 where a norm is 0.
#include "ops/optimizers/lamb/lamb.h"

#include "ops/optimizers/lamb/trust.h"

static double trust(const tr_hyper *hyper, double param_norm, double direction_norm) {
    const tr_lamb_hyper own = tr__lamb_hyper(hyper);
    return tr__lamb_trust(param_norm, direction_norm, own.min_coeff, own.max_coeff);
}

static const tr_adaptation adaptation = {
    .reference = tr__lamb_direct_reference,
    .trust = trust,
};

const tr_optimizer tr__optimizer_lamb = {
    .name = "lamb",
    .number = 5,
    .state_count = 2,
    .states = {{.name = "exp_avg"}, {.name = "exp_avg_sq", .positive = true}},
    .flops_per_element = 26,
    .reference = tr__lamb_reference,
    .adaptation = &adaptation,
    .has_betas = true,
};
