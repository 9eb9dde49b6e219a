#include "ops/gelu/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/gelu/gelu.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_gelu[];

static bool is_exact(const tr_op_desc *desc) {
    const tr_gelu_attr *attr = (const void *)desc->attr;
    return attr->form == TR_GELU_ERF;
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_gelu(launch->in[0], launch->out[0], tr_shape_count(desc->in[0].shape),
                 is_exact(desc), launch->accumulate & 1, launch->queue);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_gelu_backward(launch->in[0], launch->in[1], launch->out[0],
                          tr_shape_count(desc->in[0].shape), is_exact(desc),
                          launch->accumulate & 1, launch->queue);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 30, out);
}

static const tr_kernel gelu = {
    .name = "gelu.cuda", .supports = tr__desc_f32, .cost = cost, .launch = launch};
static const tr_kernel gelu_backward = {.name = "gelu_backward.cuda",
                                        .supports = tr__desc_f32,
                                        .cost = cost,
                                        .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_gelu[] = {
    {&tr__op_gelu, &gelu},
    {&tr__op_gelu_backward, &gelu_backward},
    {NULL, NULL},
};
