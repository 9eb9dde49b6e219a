#include "ops/flat/gradient_squares/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/accumulate/cuda_gradients.h"
#include "ops/flat/gradient_squares/gradient_squares.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_gradient_squares[];
extern tr_cuda_function tr__cuda_function_squares;

static int64_t count_of(const tr_op_desc *desc) {
    return tr_shape_count(desc->in[0].shape);
}

static void launch_squares(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    tr_cuda_squares_args args = {.x = tr__cuda_gradients(desc, launch, 0),
                                 .count = count_of(desc),
                                 .block = TR_NORM_BLOCK,
                                 .squares = launch->out[0]};
    int64_t blocks = tr__ceil_div(args.count, TR_NORM_BLOCK);
    tr__cuda_launch(launch, &tr__cuda_function_squares,
                    tr__cuda_blocks(blocks, TR_CUDA_THREADS), &args, sizeof args);
}

// One block has all.
static void launch_sum(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t count = count_of(desc);
    tr_cuda_squares_args args = {.x = tr__cuda_gradients(desc, launch, 0),
                                 .count = count,
                                 .block = count,
                                 .squares = launch->out[0],
                                 .add = true};
    tr__cuda_launch(launch, &tr__cuda_function_squares,
                    tr__cuda_blocks(1, TR_CUDA_THREADS), &args, sizeof args);
}

static bool supports_squares(const tr_op_desc *desc) {
    return tr__sums_are_read(desc->in[0].dtype);
}

static bool supports_sum(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    double count = (double)count_of(desc);
    *out = (tr_cost){.flops = 2 * count, .bytes = (double)tr_tensor_bytes(desc->in[0])};
}

static const tr_kernel squares = {.name = "gradient_squares.cuda",
                                  .supports = supports_squares,
                                  .cost = cost,
                                  .launch = launch_squares};
static const tr_kernel sum = {.name = "sum_of_squares.cuda",
                              .supports = supports_sum,
                              .cost = cost,
                              .launch = launch_sum};

const tr_cuda_kernels tr__cuda_kernels_gradient_squares[] = {
    {&tr__op_gradient_squares, &squares},
    {&tr__op_sum_of_squares, &sum},
    {NULL, NULL},
};
