// Stochastic gradient descent with momentum, in the form in which PyTorch computes it
// (Sutskever, Martens, Dahl, Hinton, ICML 2013, for Nesterov's momentum; the rate is
// outside of the buffer):
//
//     g = grad_scale * grad + weight_decay * p
//     b = g at the first update, else momentum * b + (1 - dampening) * g
//     p = p - lr * (nesterov ? g + momentum * b : b)
//
// Without momentum b = g, and the buffer is neither read nor written.
#include "ops/optimizers/sgd/sgd.h"

const tr_optimizer tr__optimizer_sgd = {
    .name = "sgd",
    .number = 2,
    .state_count = 1,
    .states = {{.name = "momentum_buffer"}},
    .flops_per_element = 8,
    .reference = tr__sgd_reference,
};
