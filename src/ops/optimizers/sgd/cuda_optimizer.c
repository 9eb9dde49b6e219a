#include "backend/cuda/kernels.h"
#include "ops/optimizers/sgd/cuda.h"
#include "ops/optimizers/sgd/sgd.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_sgd;
extern tr_cuda_function tr__cuda_function_sgd_update;

static size_t args(const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const struct tr_cuda_norms *norms,
                   void *to) {
    (void)norms;
    tr_sgd_numbers k = tr__sgd_numbers(hyper, u);
    *(tr_cuda_sgd_args *)to =
        (tr_cuda_sgd_args){.k = {.grad_scale = (float)k.grad_scale,
                                 .weight_decay = (float)k.weight_decay,
                                 .lr = (float)k.lr,
                                 .keep = (float)k.keep,
                                 .take = (float)k.take,
                                 .from_g = (float)k.from_g,
                                 .from_b = (float)k.from_b,
                                 .first = k.first},
                           .p = u->param,
                           .g = *grads,
                           .buffer = k.has_buffer ? u->state[0] : NULL,
                           .count = u->count};
    return sizeof(tr_cuda_sgd_args);
}

const tr_cuda_optimizer tr__cuda_optimizer_sgd = {.optimizer = &tr__optimizer_sgd,
                                                  .args = args,
                                                  .update =
                                                      &tr__cuda_function_sgd_update};
