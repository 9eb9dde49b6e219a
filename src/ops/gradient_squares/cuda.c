#include "ops/gradient_squares/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/gradient_squares/gradient_squares.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_gradient_squares[];

static int64_t count_of(const tr_op_desc *desc) {
    return tr_shape_count(desc->in[0].shape);
}

static void launch_squares(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    tr_cuda_squares(launch->in[0], count_of(desc), TR_NORM_BLOCK, launch->out[0],
                    launch->queue);
}

static void launch_sum(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_add_squares(launch->in[0], count_of(desc), launch->out[0], launch->queue);
}

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    double count = (double)count_of(desc);
    *out = (tr_cost){.flops = 2 * count, .bytes = count * sizeof(float)};
}

static const tr_kernel squares = {.name = "gradient_squares.cuda",
                                  .supports = supports,
                                  .cost = cost,
                                  .launch = launch_squares};
static const tr_kernel sum = {.name = "sum_of_squares.cuda",
                              .supports = supports,
                              .cost = cost,
                              .launch = launch_sum};

const tr_cuda_kernels tr__cuda_kernels_gradient_squares[] = {
    {&tr__op_gradient_squares, &squares},
    {&tr__op_sum_of_squares, &sum},
    {NULL, NULL},
};
