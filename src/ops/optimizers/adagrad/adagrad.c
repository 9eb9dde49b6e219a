// Adagrad (Duchi, Hazan, Singer, JMLR 12, 2011), in the form in which PyTorch computes
// it:
//
//     g = grad_scale * grad + weight_decay * p
//     s = s + g^2                        (s begins as initial_accumulator)
//     p = p - lr / (1 + (number - 1) * lr_decay) * g / (sqrt(s) + eps)
#include "ops/optimizers/adagrad/adagrad.h"

const tr_optimizer tr__optimizer_adagrad = {
    .name = "adagrad",
    .number = 4,
    .state_count = 1,
    .states = {{.name = "sum", .positive = true}},
    .flops_per_element = 9,
    .reference = tr__adagrad_reference,
};
