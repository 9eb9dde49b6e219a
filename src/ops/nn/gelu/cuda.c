#include "ops/nn/gelu/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/gelu/gelu.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_gelu[];
extern tr_cuda_function tr__cuda_function_gelu, tr__cuda_function_gelu_backward;

static bool is_exact(const tr_op_desc *desc) {
    const tr_gelu_attr *attr = (const void *)desc->attr;
    return attr->form == TR_GELU_ERF;
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_gelu_args args = {.x = launch->in[0],
                              .y = launch->out[0],
                              .count = tr_shape_count(desc->in[0].shape),
                              .real = (int32_t)desc->in[0].dtype,
                              .exact = is_exact(desc),
                              .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_gelu, tr__cuda_vectors(args.count),
                    &args, sizeof args);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_gelu_backward_args args = {.dy = launch->in[0],
                                       .x = launch->in[1],
                                       .dx = launch->out[0],
                                       .count = tr_shape_count(desc->in[0].shape),
                                       .real = (int32_t)desc->in[0].dtype,
                                       .exact = is_exact(desc),
                                       .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_gelu_backward,
                    tr__cuda_vectors(args.count), &args, sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 30, out);
}

static const tr_kernel gelu = {
    .name = "gelu.cuda", .supports = supports, .cost = cost, .launch = launch};
static const tr_kernel gelu_backward = {.name = "gelu_backward.cuda",
                                        .supports = supports,
                                        .cost = cost,
                                        .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_gelu[] = {
    {&tr__op_gelu, &gelu},
    {&tr__op_gelu_backward, &gelu_backward},
    {NULL, NULL},
};
