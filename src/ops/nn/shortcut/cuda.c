#include "ops/nn/shortcut/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/shortcut/shortcut.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_cuda_kernels tr__cuda_kernels_shortcut[];
extern tr_cuda_function tr__cuda_function_shortcut;
extern tr_cuda_function tr__cuda_function_shortcut_backward;

static tr_cuda_shortcut_args args_of(const tr_op_desc *desc, tr_shape x, tr_shape y,
                                     const tr_launch *launch) {
    tr_shortcut_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return (tr_cuda_shortcut_args){.batch = x.dim[0],
                                   .height = x.dim[1],
                                   .width = x.dim[2],
                                   .given = x.dim[3],
                                   .rows = y.dim[1],
                                   .columns = y.dim[2],
                                   .channels = y.dim[3],
                                   .stride = attr.stride,
                                   .from = launch->in[0],
                                   .to = launch->out[0],
                                   .real = (int32_t)desc->in[0].dtype,
                                   .add = launch->accumulate & 1};
}

static void launch_shortcut(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_shape x = desc->in[0].shape, y = desc->out[0].shape;
    tr_cuda_shortcut_args args = args_of(desc, x, y, launch);
    tr__cuda_launch(launch, &tr__cuda_function_shortcut,
                    tr__cuda_each(tr_shape_count(y)), &args, sizeof args);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_shape x = desc->out[0].shape, y = desc->in[0].shape;
    tr_cuda_shortcut_args args = args_of(desc, x, y, launch);
    tr__cuda_launch(launch, &tr__cuda_function_shortcut_backward,
                    tr__cuda_each(tr_shape_count(x)), &args, sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

static const tr_kernel shortcut = {.name = "shortcut.cuda",
                                   .supports = supports,
                                   .cost = cost,
                                   .launch = launch_shortcut};
static const tr_kernel backward = {.name = "shortcut_backward.cuda",
                                   .supports = supports,
                                   .cost = cost,
                                   .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_shortcut[] = {
    {&tr__op_shortcut, &shortcut},
    {&tr__op_shortcut_backward, &backward},
    {NULL, NULL},
};
