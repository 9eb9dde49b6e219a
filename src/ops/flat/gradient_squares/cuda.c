#include "ops/flat/gradient_squares/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/accumulate/cuda_gradients.h"
#include "ops/flat/gradient_squares/gradient_squares.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_gradient_squares[];
extern tr_cuda_function tr__cuda_function_squares, tr__cuda_function_squares_join;

static int64_t count_of(const tr_op_desc *desc) {
    return tr_shape_count(desc->in[0].shape);
}

static void launch_runs(const tr_op_desc *desc, const tr_launch *launch, int64_t block,
                        double *squares) {
    tr_cuda_squares_args args = {.x = tr__cuda_gradients(desc, launch, 0),
                                 .count = count_of(desc),
                                 .block = block,
                                 .squares = squares};
    int64_t runs = tr__ceil_div(args.count, block);
    tr__cuda_launch(launch, &tr__cuda_function_squares,
                    tr__cuda_blocks(runs, TR_CUDA_THREADS), &args, sizeof args);
}

static void launch_squares(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    launch_runs(desc, launch, TR_NORM_BLOCK, launch->out[0]);
}

// All in one goes by runs, too: a single block would read at a hundredth of the
// memory's speed. Runs follow from the count alone, and so does the order of the sum.
enum { RUNS_MOST = 2048 };

static int64_t run_of(int64_t count) {
    int64_t blocks = tr__ceil_div(count, TR_NORM_BLOCK);
    return TR_NORM_BLOCK * tr__ceil_div(blocks, RUNS_MOST);
}

// A larger count needs no less: tensors of several sizes share it.
static size_t sum_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    int64_t blocks = tr__ceil_div(count_of(desc), TR_NORM_BLOCK);
    return (size_t)tr__min_i64(blocks, RUNS_MOST) * sizeof(double);
}

static void launch_sum(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t run = run_of(count_of(desc));
    tr_cuda_squares_join_args args = {
        launch->workspace, tr__ceil_div(count_of(desc), run), launch->out[0]};
    launch_runs(desc, launch, run, launch->workspace);
    tr__cuda_launch(launch, &tr__cuda_function_squares_join,
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
                              .workspace = sum_workspace,
                              .launch = launch_sum};

const tr_cuda_kernels tr__cuda_kernels_gradient_squares[] = {
    {&tr__op_gradient_squares, &squares},
    {&tr__op_sum_of_squares, &sum},
    {NULL, NULL},
};
