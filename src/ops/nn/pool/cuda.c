#include "ops/nn/pool/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/pool/sizes.h"

extern const tr_cuda_kernels tr__cuda_kernels_pool[];
extern tr_cuda_function tr__cuda_function_pool;
extern tr_cuda_function tr__cuda_function_pool_backward;

static void launch_pool(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_pool_args args = {.s = tr__pool_sizes(desc, desc->in[0].shape),
                              .x = launch->in[0],
                              .y = launch->out[0],
                              .real = (int32_t)desc->in[0].dtype,
                              .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_pool,
                    tr__cuda_each(tr_shape_count(desc->out[0].shape)), &args,
                    sizeof args);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_pool_args args = {.s = tr__pool_sizes(desc, desc->in[1].shape),
                              .dy = launch->in[0],
                              .x = launch->in[1],
                              .dx = launch->out[0],
                              .real = (int32_t)desc->in[0].dtype,
                              .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_pool_backward,
                    tr__cuda_each(tr_shape_count(desc->out[0].shape)), &args,
                    sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel pool = {
    .name = "pool.cuda", .supports = supports, .cost = cost, .launch = launch_pool};
static const tr_kernel backward = {.name = "pool_backward.cuda",
                                   .supports = supports,
                                   .cost = cost,
                                   .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_pool[] = {
    {&tr__op_pool, &pool},
    {&tr__op_pool_average_backward, &backward},
    {&tr__op_pool_max_backward, &backward},
    {NULL, NULL},
};
