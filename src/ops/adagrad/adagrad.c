// Adagrad (Duchi, Hazan, Singer, JMLR 12, 2011), in the form in which PyTorch computes
// it:
//
//     g = grad_scale * grad + weight_decay * p
//     s = s + g^2                        (s begins as initial_accumulator)
//     p = p - lr / (1 + (number - 1) * lr_decay) * g / (sqrt(s) + eps)
#include "ops/adagrad/adagrad.h"

void tr__adagrad_cpu_generic(const tr_hyper *hyper, const tr_update *update);
#if defined(__x86_64__)
void tr__adagrad_cpu_avx2(const tr_hyper *hyper, const tr_update *update);
void tr__adagrad_cpu_avx512(const tr_hyper *hyper, const tr_update *update);
#endif

const tr_optimizer tr__optimizer_adagrad = {
    .name = "adagrad",
    .number = 4,
    .state_count = 1,
    .state_names = {"sum"},
    .flops_per_element = 9,
    .reference = tr__adagrad_reference,
    .cpu = TR_ISA_TABLE(tr__adagrad_cpu),
};
