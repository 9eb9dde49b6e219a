#include "backend/cuda/kernels.h"
#include "ops/lars/cuda.h"
#include "ops/lars/lars.h"
#include "ops/update/cuda_measure.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_lars;
extern tr_cuda_function tr__cuda_function_lars_direction;
extern tr_cuda_function tr__cuda_function_lars_update;

static tr_cuda_lars_args args_of(const tr_hyper *hyper, const tr_update *u,
                                 const tr_cuda_gradients *grads) {
    tr_lars_numbers k = tr__lars_numbers(hyper, u);
    return (tr_cuda_lars_args){.k = {.grad_scale = (float)k.grad_scale,
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
                               .ratio = tr__lars_ratio(hyper)};
}

static void measure(const tr_launch *launch, const tr_hyper *hyper, const tr_update *u,
                    const tr_cuda_gradients *grads, int64_t first, double *squares) {
    tr_cuda_lars_args args = args_of(hyper, u, grads);
    args.parts = tr__cuda_parts(u, first, squares);
    tr__cuda_launch(launch, &tr__cuda_function_lars_direction,
                    tr__cuda_part_grid(&args.parts), &args, sizeof args);
}

static void update(const tr_launch *launch, const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const double *squares) {
    tr_cuda_lars_args args = args_of(hyper, u, grads);
    args.squares = squares;
    tr__cuda_launch(launch, &tr__cuda_function_lars_update, tr__cuda_each(u->count),
                    &args, sizeof args);
}

const tr_cuda_optimizer tr__cuda_optimizer_lars = {&tr__optimizer_lars, update,
                                                   measure};
