#include "backend/cuda/kernels.h"
#include "ops/adam/adam.h"
#include "ops/adam/cuda.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_adam;

static void update(const tr_hyper *hyper, const tr_update *u, void *stream) {
    tr_adam_numbers k = tr__adam_numbers(hyper, u);
    tr_cuda_adam numbers = {.grad_scale = (float)k.grad_scale,
                            .l2 = (float)k.l2,
                            .keep = (float)k.keep,
                            .m_rate = (float)k.m_rate,
                            .beta2 = (float)k.beta2,
                            .v_rate = (float)k.v_rate,
                            .step = (float)k.step,
                            .over_root_bias2 = (float)(1 / k.root_bias2),
                            .eps = (float)k.eps};
    tr_cuda_adam_update(numbers, u->param, u->grad, u->state[0], u->state[1], u->count,
                        stream);
}

const tr_cuda_optimizer tr__cuda_optimizer_adam = {&tr__optimizer_adam, update};
