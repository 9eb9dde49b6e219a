#include "backend/cuda/kernels.h"
#include "ops/optimizers/lamb/cuda.h"
#include "ops/optimizers/lamb/lamb.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_lamb;
extern tr_cuda_function tr__cuda_function_lamb_direction;
extern tr_cuda_function tr__cuda_function_lamb_update;

static size_t args(const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const tr_cuda_norms *norms,
                   void *to) {
    tr_lamb_numbers k = tr__lamb_numbers(hyper, u);
    const tr_lamb_hyper own = tr__lamb_hyper(hyper);
    *(tr_cuda_lamb_args *)to =
        (tr_cuda_lamb_args){.k = {.grad_scale = (float)k.grad_scale,
                                  .m_rate = (float)k.m_rate,
                                  .beta2 = (float)k.beta2,
                                  .v_rate = (float)k.v_rate,
                                  .m_scale = (float)k.m_scale,
                                  .v_scale = (float)k.v_scale,
                                  .eps = (float)k.eps,
                                  .decay = (float)k.decay,
                                  .step = k.step},
                            .p = u->param,
                            .g = *grads,
                            .m = u->state[0],
                            .v = u->state[1],
                            .count = u->count,
                            .least = own.min_coeff,
                            .most = own.max_coeff,
                            .squares = norms->squares,
                            .parts = norms->parts};
    return sizeof(tr_cuda_lamb_args);
}

const tr_cuda_optimizer tr__cuda_optimizer_lamb = {
    .optimizer = &tr__optimizer_lamb,
    .args = args,
    .update = &tr__cuda_function_lamb_update,
    .measure = &tr__cuda_function_lamb_direction};
