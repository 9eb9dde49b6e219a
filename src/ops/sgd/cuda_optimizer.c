#include "backend/cuda/kernels.h"
#include "ops/sgd/cuda.h"
#include "ops/sgd/sgd.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_sgd;

static void update(const tr_hyper *hyper, const tr_update *u, void *stream) {
    tr_sgd_numbers k = tr__sgd_numbers(hyper, u);
    tr_cuda_sgd numbers = {.grad_scale = (float)k.grad_scale,
                           .weight_decay = (float)k.weight_decay,
                           .lr = (float)k.lr,
                           .keep = (float)k.keep,
                           .take = (float)k.take,
                           .from_g = (float)k.from_g,
                           .from_b = (float)k.from_b,
                           .first = k.first};
    tr_cuda_sgd_update(numbers, u->param, u->grad, k.has_buffer ? u->state[0] : NULL,
                       u->count, stream);
}

const tr_cuda_optimizer tr__cuda_optimizer_sgd = {&tr__optimizer_sgd, update};
