#include "ops/nn/pointwise/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/pointwise/pointwise.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_cuda_kernels tr__cuda_kernels_pointwise[];
extern tr_cuda_function tr__cuda_function_pointwise,
    tr__cuda_function_pointwise_backward;

static void run(const tr_op_desc *desc, const tr_launch *launch,
                const tr_cuda_function *function, const void *x, const void *dy) {
    tr_pointwise_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    tr_cuda_pointwise_args args = {.x = x,
                                   .dy = dy,
                                   .y = launch->out[0],
                                   .count = tr_shape_count(desc->in[0].shape),
                                   .kind = attr.kind,
                                   .a = attr.a,
                                   .b = attr.b,
                                   .real = (int32_t)desc->in[0].dtype,
                                   .add = launch->accumulate & 1};
    tr__cuda_launch(launch, function, tr__cuda_each(args.count), &args, sizeof args);
}

static void launch_value(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, &tr__cuda_function_pointwise, launch->in[0], NULL);
}

static void launch_slope(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, &tr__cuda_function_pointwise_backward, launch->in[1],
        launch->in[0]);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

static const tr_kernel value = {.name = "pointwise.cuda",
                                .supports = supports,
                                .cost = cost,
                                .launch = launch_value};
static const tr_kernel slope = {.name = "pointwise_backward.cuda",
                                .supports = supports,
                                .cost = cost,
                                .launch = launch_slope};

const tr_cuda_kernels tr__cuda_kernels_pointwise[] = {
    {&tr__op_pointwise, &value},
    {&tr__op_pointwise_backward, &slope},
    {NULL, NULL},
};
