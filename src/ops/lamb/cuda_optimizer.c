#include "backend/cuda/kernels.h"
#include "ops/lamb/cuda.h"
#include "ops/lamb/lamb.h"
#include "ops/update/cuda_measure.h"

extern const tr_cuda_optimizer tr__cuda_optimizer_lamb;
extern tr_cuda_function tr__cuda_function_lamb_direction;
extern tr_cuda_function tr__cuda_function_lamb_update;

static tr_cuda_lamb_args args_of(const tr_hyper *hyper, const tr_update *u,
                                 const tr_cuda_gradients *grads) {
    tr_lamb_numbers k = tr__lamb_numbers(hyper, u);
    const tr_lamb_hyper own = tr__lamb_hyper(hyper);
    return (tr_cuda_lamb_args){.k = {.grad_scale = (float)k.grad_scale,
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
                               .most = own.max_coeff};
}

static void measure(const tr_launch *launch, const tr_hyper *hyper, const tr_update *u,
                    const tr_cuda_gradients *grads, int64_t first, double *squares) {
    tr_cuda_lamb_args args = args_of(hyper, u, grads);
    args.parts = tr__cuda_parts(u, first, squares);
    tr__cuda_launch(launch, &tr__cuda_function_lamb_direction,
                    tr__cuda_part_grid(&args.parts), &args, sizeof args);
}

static void update(const tr_launch *launch, const tr_hyper *hyper, const tr_update *u,
                   const tr_cuda_gradients *grads, const double *squares) {
    tr_cuda_lamb_args args = args_of(hyper, u, grads);
    args.squares = squares;
    tr__cuda_launch(launch, &tr__cuda_function_lamb_update, tr__cuda_each(u->count),
                    &args, sizeof args);
}

const tr_cuda_optimizer tr__cuda_optimizer_lamb = {&tr__optimizer_lamb, update,
                                                   measure};
