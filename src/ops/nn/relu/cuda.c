#include "ops/nn/relu/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/relu/relu.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_relu[];
extern tr_cuda_function tr__cuda_function_relu, tr__cuda_function_relu_backward;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_relu_args args = {.x = launch->in[0],
                              .y = launch->out[0],
                              .count = tr_shape_count(desc->in[0].shape),
                              .real = (int32_t)desc->in[0].dtype,
                              .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_relu, tr__cuda_vectors(args.count),
                    &args, sizeof args);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_relu_backward_args args = {.dy = launch->in[0],
                                       .y = launch->in[1],
                                       .dx = launch->out[0],
                                       .count = tr_shape_count(desc->in[0].shape),
                                       .real = (int32_t)desc->in[0].dtype,
                                       .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_relu_backward,
                    tr__cuda_vectors(args.count), &args, sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel relu = {
    .name = "relu.cuda", .supports = supports, .cost = cost, .launch = launch};
static const tr_kernel relu_backward = {.name = "relu_backward.cuda",
                                        .supports = supports,
                                        .cost = cost,
                                        .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_relu[] = {
    {&tr__op_relu, &relu},
    {&tr__op_relu_backward, &relu_backward},
    {NULL, NULL},
};
