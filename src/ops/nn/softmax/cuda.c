#include "ops/nn/softmax/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/softmax/softmax.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_cuda_kernels tr__cuda_kernels_softmax[];
extern tr_cuda_function tr__cuda_function_softmax, tr__cuda_function_softmax_backward;

static void run(const tr_op_desc *desc, const tr_launch *launch,
                const tr_cuda_function *function, const void *x, const void *dy) {
    tr_softmax_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    tr_cuda_softmax_args args = {.x = x,
                                 .dy = dy,
                                 .out = launch->out[0],
                                 .rows = tr__shape_rows(desc->in[0].shape),
                                 .width = tr__shape_width(desc->in[0].shape),
                                 .scale = attr.scale,
                                 .real = (int32_t)desc->in[0].dtype,
                                 .add = launch->accumulate & 1};
    tr__cuda_launch(launch, function, tr__cuda_blocks(args.rows, 32), &args,
                    sizeof args);
}

static void launch_softmax(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    run(desc, launch, &tr__cuda_function_softmax, launch->in[0], NULL);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    run(desc, launch, &tr__cuda_function_softmax_backward, launch->in[1],
        launch->in[0]);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 20, out);
}

static const tr_kernel softmax = {.name = "softmax.cuda",
                                  .supports = supports,
                                  .cost = cost,
                                  .launch = launch_softmax};
static const tr_kernel softmax_backward = {.name = "softmax_backward.cuda",
                                           .supports = supports,
                                           .cost = cost,
                                           .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_softmax[] = {
    {&tr__op_softmax, &softmax},
    {&tr__op_softmax_backward, &softmax_backward},
    {NULL, NULL},
};
