#include "ops/nn/element_loss/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "base/half.h"
#include "ops/flat/cast/cuda_cast.h"
#include "ops/nn/element_loss/element.h"
#include "ops/nn/linear_cross_entropy/cuda_sums.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_element_loss[];
extern tr_cuda_function tr__cuda_function_element_loss;

enum { BLOCKS_MOST = 1024 };

static int64_t blocks_of(const tr_op_desc *desc) {
    int64_t count = tr_shape_count(desc->in[0].shape);
    return tr__min_i64(tr__ceil_div(count, TR_CUDA_THREADS), BLOCKS_MOST);
}

static void run(const tr_op_desc *desc, const tr_launch *launch, void *dx,
                double *sums) {
    const tr_cuda_element_loss_args args = {
        .x = launch->in[0],
        .targets = launch->in[1],
        .dx = dx,
        .each = launch->workspace,
        .count = tr_shape_count(desc->in[0].shape),
        .seed = launch->run->loss_seed,
        .kind = (int32_t)tr__element_kind(desc),
        .real = (int32_t)desc->in[0].dtype,
        .add = launch->accumulate & 1,
    };
    tr__cuda_launch(launch, &tr__cuda_function_element_loss,
                    tr__cuda_blocks(blocks_of(desc), TR_CUDA_THREADS), &args,
                    sizeof args);
    tr__cuda_add_row_sums(launch, args.each, blocks_of(desc), sums);
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, NULL, launch->out[0]);
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, launch->out[0], launch->out[1]);
}

static void logits(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr__cuda_cast_input(desc, launch);
}

static bool supports(const tr_op_desc *desc) {
    return tr__dtype_is_real(desc->in[0].dtype) &&
           tr__element_supports(desc, desc->in[0].dtype);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)blocks_of(desc) * sizeof(tr_cuda_row_sums);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 40, out);
}

static const tr_kernel loss = {.name = "element_loss.cuda",
                               .supports = supports,
                               .cost = cost,
                               .workspace = workspace,
                               .launch = forward};
static const tr_kernel loss_backward = {.name = "element_loss_backward.cuda",
                                        .supports = supports,
                                        .cost = cost,
                                        .workspace = workspace,
                                        .launch = backward};
static const tr_kernel element_logits = {.name = "element_logits.cuda",
                                         .supports = supports,
                                         .cost = cost,
                                         .launch = logits};

const tr_cuda_kernels tr__cuda_kernels_element_loss[] = {
    {&tr__op_element_loss, &loss},
    {&tr__op_element_loss_backward, &loss_backward},
    {&tr__op_element_logits, &element_logits},
    {NULL, NULL},
};
