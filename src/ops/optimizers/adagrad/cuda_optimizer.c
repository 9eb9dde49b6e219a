#include "backend/cuda/kernels.h"
#include "ops/optimizers/adagrad/adagrad.h"
#include "ops/optimizers/adagrad/cuda.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_adagrad;
extern tr_cuda_function tr__cuda_function_adagrad_update;

static size_t args(const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const struct tr_cuda_norms *norms,
                   void *to) {
    (void)norms;
    tr_adagrad_numbers k = tr__adagrad_numbers(hyper, u);
    *(tr_cuda_adagrad_args *)to =
        (tr_cuda_adagrad_args){.k = {.grad_scale = (float)k.grad_scale,
                                     .weight_decay = (float)k.weight_decay,
                                     .lr = (float)k.lr,
                                     .eps = (float)k.eps,
                                     .initial = (float)k.initial,
                                     .first = k.first},
                               .p = u->param,
                               .g = *grads,
                               .sum = u->state[0],
                               .count = u->count};
    return sizeof(tr_cuda_adagrad_args);
}

const tr_cuda_optimizer tr__cuda_optimizer_adagrad = {
    .optimizer = &tr__optimizer_adagrad,
    .args = args,
    .update = &tr__cuda_function_adagrad_update};
