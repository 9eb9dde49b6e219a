#include "ops/nn/cross_entropy/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/flat/cast/cuda_cast.h"
#include "ops/nn/cross_entropy/row.h"
#include "ops/nn/linear_cross_entropy/cuda_sums.h"

extern const tr_cuda_kernels tr__cuda_kernels_cross_entropy[];
extern tr_cuda_function tr__cuda_function_class_loss;

static tr_cuda_class_loss_args begin(const tr_op_desc *desc, const tr_launch *launch) {
    tr_cross_entropy_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return (tr_cuda_class_loss_args){
        .x = launch->in[0],
        .targets = launch->in[1],
        .weight = tr__is_weighted(desc) ? launch->in[2] : NULL,
        .classes = tr__shape_width(desc->in[0].shape),
        .seed = launch->run->loss_seed,
        .smoothing = attr.smoothing,
        .real = (int32_t)desc->in[0].dtype,
        .add = launch->accumulate & 1,
    };
}

static void compare(const tr_op_desc *desc, const tr_launch *launch,
                    const tr_cuda_class_loss_args *args) {
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    tr__cuda_launch(launch, &tr__cuda_function_class_loss,
                    tr__cuda_blocks(rows, TR_CUDA_THREADS), args, sizeof *args);
}

static void run(const tr_op_desc *desc, const tr_launch *launch, void *dx,
                double *sums) {
    tr_cuda_class_loss_args args = begin(desc, launch);
    args.dx = dx;
    args.each = launch->workspace;
    compare(desc, launch, &args);
    tr__cuda_add_row_sums(launch, args.each, tr__shape_rows(desc->in[0].shape), sums);
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, NULL, launch->out[0]);
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, launch->out[0], launch->out[1]);
}

static void each(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_cuda_class_loss_args args = begin(desc, launch);
    (void)state;
    args.losses = launch->out[0];
    compare(desc, launch, &args);
}

static void each_backward(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    tr_cuda_class_loss_args args = begin(desc, launch);
    (void)state;
    args.seeds = launch->in[3]; // d_each
    args.dx = launch->out[0];
    compare(desc, launch, &args);
}

static void logits(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr__cuda_cast_input(desc, launch);
}

static bool supports(const tr_op_desc *desc) {
    return tr__dtype_is_real(desc->in[0].dtype) &&
           tr__cross_entropy_supports(desc, desc->in[0].dtype);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)tr__shape_rows(desc->in[0].shape) * sizeof(tr_cuda_row_sums);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 20, out);
}

static const tr_kernel loss = {.name = "cross_entropy.cuda",
                               .supports = supports,
                               .cost = cost,
                               .workspace = workspace,
                               .launch = forward};
static const tr_kernel loss_backward = {.name = "cross_entropy_backward.cuda",
                                        .supports = supports,
                                        .cost = cost,
                                        .workspace = workspace,
                                        .launch = backward};
static const tr_kernel loss_each = {.name = "cross_entropy_each.cuda",
                                    .supports = supports,
                                    .cost = cost,
                                    .launch = each};
static const tr_kernel loss_each_backward = {.name = "cross_entropy_each_backward.cuda",
                                             .supports = supports,
                                             .cost = cost,
                                             .launch = each_backward};
static const tr_kernel class_logits = {.name = "cross_entropy_logits.cuda",
                                       .supports = supports,
                                       .cost = cost,
                                       .launch = logits};

const tr_cuda_kernels tr__cuda_kernels_cross_entropy[] = {
    {&tr__op_cross_entropy, &loss},
    {&tr__op_cross_entropy_backward, &loss_backward},
    {&tr__op_cross_entropy_each, &loss_each},
    {&tr__op_cross_entropy_each_backward, &loss_each_backward},
    {&tr__op_cross_entropy_logits, &class_logits},
    {NULL, NULL},
};
