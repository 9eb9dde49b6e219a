#include "backend/cuda/kernels.h"
#include "ops/optimizers/lion/cuda.h"
#include "ops/optimizers/lion/lion.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_lion;
extern tr_cuda_function tr__cuda_function_lion_update;

static size_t args(const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const struct tr_cuda_norms *norms,
                   void *to) {
    (void)norms;
    tr_lion_numbers k = tr__lion_numbers(hyper, u);
    *(tr_cuda_lion_args *)to =
        (tr_cuda_lion_args){.k = {.grad_scale = (float)k.grad_scale,
                                  .keep = (float)k.keep,
                                  .beta1 = (float)k.beta1,
                                  .g_share = (float)k.g_share,
                                  .beta2 = (float)k.beta2,
                                  .m_rate = (float)k.m_rate,
                                  .lr = (float)k.lr},
                            .p = u->param,
                            .g = *grads,
                            .m = u->state[0],
                            .count = u->count};
    return sizeof(tr_cuda_lion_args);
}

const tr_cuda_optimizer tr__cuda_optimizer_lion = {.optimizer = &tr__optimizer_lion,
                                                   .args = args,
                                                   .update =
                                                       &tr__cuda_function_lion_update};
