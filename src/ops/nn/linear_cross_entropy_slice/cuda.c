#include "ops/nn/linear_cross_entropy_slice/cuda.h"

#include "base/checked.h"
#include "base/half.h"
#include "ops/nn/linear_cross_entropy/cuda.h"
#include "ops/nn/linear_cross_entropy/cuda_head.h"
#include "ops/nn/linear_cross_entropy_slice/operands.h"

extern const tr_cuda_kernels tr__cuda_kernels_linear_cross_entropy_slice[];
extern tr_cuda_function tr__cuda_function_slice_fold;
extern tr_cuda_function tr__cuda_function_slice_soften;
extern tr_cuda_function tr__cuda_function_slice_before;
extern tr_cuda_function tr__cuda_function_slice_loss;
extern tr_cuda_function tr__cuda_function_slice_loss_backward;

static int64_t first_class(const tr_op_desc *desc) {
    tr_lce_slice_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return attr.first;
}

// The logits of a chunk, unless they are made where they are kept.
static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return tr__lce_keeps_logits(desc) ? 0 : tr__cuda_logits_bytes(desc);
}

// ---- forward

// Rows of `running`, or of `best`, from `first` on.
static double *running_at(const void *running, int64_t first) {
    return running ? (double *)running + first * RUNNING : NULL;
}

static float *best_at(const void *best, int64_t first) {
    return best ? (float *)best + first * BEST : NULL;
}

static void fold(const tr_op_desc *desc, const tr_launch *launch,
                 const tr_linear_dims *part, int64_t first, void *logits) {
    tr_cuda_slice_fold_args args = {
        .logits = logits,
        .keeps = tr__lce_keeps_logits(desc),
        .targets = (const int32_t *)launch->in[HEAD_TARGETS] + first,
        .width = part->out,
        .pitch = tr__cuda_logits_row(part),
        .logits_real = (int32_t)tr__cuda_logits_real(desc),
        .first = first_class(desc),
        .running = running_at(launch->in[SLICE_BEFORE], first),
        .best = best_at(launch->in[SLICE_BEST], first),
        .running_now = running_at(launch->out[SLICE_RUNNING], first),
        .best_now = best_at(launch->out[SLICE_BEST_NOW], first)};
    tr__cuda_launch(launch, &tr__cuda_function_slice_fold,
                    tr__cuda_blocks(part->rows, TR_CUDA_LOGITS_THREADS), &args,
                    sizeof args);
}

static void launch_forward(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    bool keeps = tr__lce_keeps_logits(desc);
    tr__cuda_head_chunks(
        desc, launch,
        (tr_cuda_head_walk){.room = launch->workspace,
                            .kept = keeps ? launch->out[SLICE_LOGITS] : NULL,
                            .take = fold});
}

// ---- backward

static void soften(const tr_op_desc *desc, const tr_launch *launch,
                   const tr_linear_dims *part, int64_t first, void *logits) {
    tr_cuda_slice_soften_args args = {
        .logits = logits,
        .targets = (const int32_t *)launch->in[HEAD_TARGETS] + first,
        .rows = part->rows,
        .width = part->out,
        .padded = tr__cuda_logits_row(part),
        .pitch = tr__cuda_logits_row(part),
        .first = first_class(desc),
        .real = (int32_t)desc->in[HEAD_X].dtype,
        .logits_real = (int32_t)tr__cuda_logits_real(desc),
        .before = running_at(launch->in[SLICE_BEFORE], first),
        .after = running_at(launch->in[SLICE_AFTER], first),
        .dafter = running_at(launch->in[SLICE_DAFTER], first),
        .dbefore = running_at(launch->out[SLICE_DBEFORE], first),
        .add = launch->accumulate >> SLICE_DBEFORE & 1};
    tr__cuda_launch(launch, &tr__cuda_function_slice_soften,
                    tr__cuda_blocks(part->rows, TR_CUDA_LOGITS_THREADS), &args,
                    sizeof args);
    if (args.dbefore && tr__lce_wants(desc, SLICE_DBEFORE)) {
        tr__cuda_launch(launch, &tr__cuda_function_slice_before,
                        tr__cuda_each(part->rows), &args, sizeof args);
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    bool given = tr__lce_is_given_logits(desc);
    tr__cuda_head_chunks(
        desc, launch,
        (tr_cuda_head_walk){.room = launch->workspace,
                            .kept = given ? (void *)launch->in[SLICE_GIVEN] : NULL,
                            .take = soften,
                            .gradients = true});
}

// ---- the loss after the last slice

static tr_cuda_slice_loss_args loss_of(const tr_op_desc *desc,
                                       const tr_launch *launch) {
    return (tr_cuda_slice_loss_args){.running = launch->in[LOSS_RUNNING],
                                     .best = launch->in[LOSS_BEST],
                                     .targets = launch->in[LOSS_TARGETS],
                                     .rows =
                                         tr_shape_count(desc->in[LOSS_TARGETS].shape)};
}

static void launch_loss(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_slice_loss_args args = loss_of(desc, launch);
    args.sums = launch->out[0];
    tr__cuda_launch(launch, &tr__cuda_function_slice_loss,
                    tr__cuda_blocks(1, TR_CUDA_THREADS), &args, sizeof args);
}

static void launch_loss_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    (void)state;
    tr_cuda_slice_loss_args args = loss_of(desc, launch);
    args.sums = launch->out[LOSS_SUMS];
    args.drunning = launch->out[LOSS_DRUNNING];
    args.seed = launch->run->loss_seed;
    args.add = launch->accumulate >> LOSS_DRUNNING & 1;
    if (args.drunning) {
        tr__cuda_launch(launch, &tr__cuda_function_slice_loss_backward,
                        tr__cuda_each(args.rows), &args, sizeof args);
    }
    tr__cuda_launch(launch, &tr__cuda_function_slice_loss,
                    tr__cuda_blocks(1, TR_CUDA_THREADS), &args, sizeof args);
}

// ---- what they support and cost

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[HEAD_X].dtype;
    return tr__dtype_is_real(real) && tr__lce_slice_supports(desc, real);
}

static bool supports_backward(const tr_op_desc *desc) {
    tr_dtype real = desc->in[HEAD_X].dtype;
    return tr__dtype_is_real(real) && tr__lce_slice_backward_supports(desc, real);
}

static bool supports_loss(const tr_op_desc *desc) {
    return desc->in_count == LOSS_INPUTS && desc->in[LOSS_RUNNING].dtype == TR_F64 &&
           desc->in[LOSS_BEST].dtype == TR_F32 &&
           desc->in[LOSS_TARGETS].dtype == TR_I32;
}

static void cost_loss(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

static const tr_kernel forward = {.name = "head_slice.cuda",
                                  .supports = supports,
                                  .cost = tr__lce_forward_cost,
                                  .workspace = workspace,
                                  .launch = launch_forward,
                                  .padding = tr__cuda_head_padding};
static const tr_kernel backward = {.name = "head_slice_backward.cuda",
                                   .supports = supports_backward,
                                   .cost = tr__lce_backward_cost,
                                   .workspace = workspace,
                                   .launch = launch_backward,
                                   .padding = tr__cuda_head_padding};
static const tr_kernel loss = {.name = "head_slice_loss.cuda",
                               .supports = supports_loss,
                               .cost = cost_loss,
                               .launch = launch_loss};
static const tr_kernel loss_backward = {.name = "head_slice_loss_backward.cuda",
                                        .supports = supports_loss,
                                        .cost = cost_loss,
                                        .launch = launch_loss_backward};

const tr_cuda_kernels tr__cuda_kernels_linear_cross_entropy_slice[] = {
    {&tr__op_linear_cross_entropy_slice, &forward},
    {&tr__op_linear_cross_entropy_slice_backward, &backward},
    {&tr__op_linear_cross_entropy_slice_loss, &loss},
    {&tr__op_linear_cross_entropy_slice_loss_backward, &loss_backward},
    {NULL, NULL},
};
