#include "backend/cuda/kernels.h"
#include "ops/optimizers/adam/adam.h"
#include "ops/optimizers/adam/cuda.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_adam;
extern tr_cuda_function tr__cuda_function_adam_update;

static size_t args(const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const struct tr_cuda_norms *norms,
                   void *to) {
    (void)norms;
    tr_adam_numbers k = tr__adam_numbers(hyper, u);
    *(tr_cuda_adam_args *)to =
        (tr_cuda_adam_args){.k = {.grad_scale = (float)k.grad_scale,
                                  .l2 = (float)k.l2,
                                  .keep = (float)k.keep,
                                  .m_rate = (float)k.m_rate,
                                  .beta2 = (float)k.beta2,
                                  .v_rate = (float)k.v_rate,
                                  .step = (float)k.step,
                                  .over_root_bias2 = (float)(1 / k.root_bias2),
                                  .eps = (float)k.eps},
                            .p = u->param,
                            .g = *grads,
                            .m = u->state[0],
                            .v = u->state[1],
                            .count = u->count};
    return sizeof(tr_cuda_adam_args);
}

const tr_cuda_optimizer tr__cuda_optimizer_adam = {.optimizer = &tr__optimizer_adam,
                                                   .args = args,
                                                   .update =
                                                       &tr__cuda_function_adam_update};
