#include "backend/cuda/kernels.h"
#include "ops/optimizers/lars/cuda.h"
#include "ops/optimizers/lars/lars.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_lars;
extern tr_cuda_function tr__cuda_function_lars_direction;
extern tr_cuda_function tr__cuda_function_lars_update;

static size_t args(const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const tr_cuda_norms *norms,
                   void *to) {
    tr_lars_numbers k = tr__lars_numbers(hyper, u);
    *(tr_cuda_lars_args *)to =
        (tr_cuda_lars_args){.k = {.grad_scale = (float)k.grad_scale,
                                  .weight_decay = (float)k.weight_decay,
                                  .keep = (float)k.keep,
                                  .from_b = (float)k.from_b,
                                  .rate = k.rate,
                                  .ahead = k.from_g != 0,
                                  .first = k.first},
                            .p = u->param,
                            .g = *grads,
                            .buffer = k.has_buffer ? u->state[0] : NULL,
                            .count = u->count,
                            .ratio = tr__lars_ratio(hyper),
                            .squares = norms->squares,
                            .parts = norms->parts};
    return sizeof(tr_cuda_lars_args);
}

const tr_cuda_optimizer tr__cuda_optimizer_lars = {
    .optimizer = &tr__optimizer_lars,
    .args = args,
    .update = &tr__cuda_function_lars_update,
    .measure = &tr__cuda_function_lars_direction};
