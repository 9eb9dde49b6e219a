#include "ops/relu/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/operand.h"
#include "ops/relu/relu.h"

extern const tr_cuda_kernels tr__cuda_kernels_relu[];

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_relu(launch->in[0], launch->out[0], tr_shape_count(desc->in[0].shape),
                 launch->accumulate & 1, launch->queue);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_relu_backward(launch->in[0], launch->in[1], launch->out[0],
                          tr_shape_count(desc->in[0].shape), launch->accumulate & 1,
                          launch->queue);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel relu = {
    .name = "relu.cuda", .supports = tr__desc_f32, .cost = cost, .launch = launch};
static const tr_kernel relu_backward = {.name = "relu_backward.cuda",
                                        .supports = tr__desc_f32,
                                        .cost = cost,
                                        .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_relu[] = {
    {&tr__op_relu, &relu},
    {&tr__op_relu_backward, &relu_backward},
    {NULL, NULL},
};
