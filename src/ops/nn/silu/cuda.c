#include "ops/nn/silu/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/silu/silu.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_silu[];
extern tr_cuda_function tr__cuda_function_silu, tr__cuda_function_silu_backward;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_silu_args args = {.x = launch->in[0],
                              .y = launch->out[0],
                              .count = tr_shape_count(desc->in[0].shape),
                              .real = (int32_t)desc->in[0].dtype,
                              .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_silu, tr__cuda_vectors(args.count),
                    &args, sizeof args);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_silu_backward_args args = {.dy = launch->in[0],
                                       .x = launch->in[1],
                                       .dx = launch->out[0],
                                       .count = tr_shape_count(desc->in[0].shape),
                                       .real = (int32_t)desc->in[0].dtype,
                                       .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_silu_backward,
                    tr__cuda_vectors(args.count), &args, sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel silu_forward = {
    .name = "silu.cuda", .supports = supports, .cost = cost, .launch = launch};
static const tr_kernel silu_backward = {.name = "silu_backward.cuda",
                                        .supports = supports,
                                        .cost = cost,
                                        .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_silu[] = {
    {&tr__op_silu, &silu_forward},
    {&tr__op_silu_backward, &silu_backward},
    {NULL, NULL},
};
