#include "backend/cuda/kernels.h"
#include "ops/adam/adam.h"
#include "ops/adam/cuda.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_adam;
extern tr_cuda_function tr__cuda_function_adam_update;

static void update(const tr_launch *launch, const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const double *squares) {
    (void)squares;
    tr_adam_numbers k = tr__adam_numbers(hyper, u);
    tr_cuda_adam_args args = {.k = {.grad_scale = (float)k.grad_scale,
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
    tr__cuda_launch(launch, &tr__cuda_function_adam_update, tr__cuda_each(u->count),
                    &args, sizeof args);
}

const tr_cuda_optimizer tr__cuda_optimizer_adam = {.optimizer = &tr__optimizer_adam,
                                                   .update = update};
