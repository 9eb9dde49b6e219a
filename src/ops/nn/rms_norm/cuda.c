#include "ops/nn/rms_norm/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "ops/nn/layer_norm/cuda_norm.h"
#include "ops/nn/linear/cuda_linear.h"
#include "ops/nn/rms_norm/rms_norm.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_rms_norm[];
extern tr_cuda_function tr__cuda_function_rms_norm;
extern tr_cuda_function tr__cuda_function_rms_norm_narrow;
extern tr_cuda_function tr__cuda_function_rms_norm_wide;
extern tr_cuda_function tr__cuda_function_rms_norm_backward;
extern tr_cuda_function tr__cuda_function_rms_norm_weight;
extern tr_cuda_function tr__cuda_function_rms_norm_both;

enum { PARTS_MOST = 64, PART_LEAST = 64 };

static tr_cuda_rms_norm_sizes sizes_of(const tr_op_desc *desc) {
    tr_rms_norm_sizes s = tr__rms_norm_sizes(desc->in[0].shape, desc->attr);
    int64_t rest = s.width - s.heads * s.depth;
    return (tr_cuda_rms_norm_sizes){.rows = s.rows,
                                    .width = s.width,
                                    .depth = s.depth,
                                    .heads = s.heads,
                                    .queries = s.queries,
                                    .weights = s.weights,
                                    .units = s.heads + tr__ceil_div(rest, s.depth),
                                    .real = (int32_t)desc->in[0].dtype,
                                    .epsilon = s.epsilon};
}

static tr_cuda_grid unit_grid(const tr_cuda_rms_norm_sizes *s) {
    int64_t blocks = tr__ceil_div(s->rows * s->units, TR_CUDA_RMS_UNITS);
    return tr__cuda_blocks(blocks, TR_CUDA_LANES * TR_CUDA_RMS_UNITS);
}

static void launch_rows(const tr_launch *launch, const tr_cuda_rms_norm_args *args) {
    tr_cuda_norm norm = {.rows = args->s.rows,
                         .width = args->s.width,
                         .epsilon = args->s.epsilon,
                         .real = args->s.real,
                         .x = args->x,
                         .weight = args->weight,
                         .y = args->y,
                         .rstd = args->rstd,
                         .add_y = args->add_y,
                         .add_rstd = args->add_rstd};
    tr__cuda_norm_rows(launch, &tr__cuda_function_rms_norm_narrow,
                       &tr__cuda_function_rms_norm_wide, &norm);
}

static void launch_norm(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_rms_norm_args args = {.s = sizes_of(desc),
                                  .x = launch->in[0],
                                  .weight = launch->in[1],
                                  .y = launch->out[0],
                                  .rstd = launch->out[1],
                                  .add_y = launch->accumulate & 1,
                                  .add_rstd = launch->accumulate >> 1 & 1};
    if (args.s.depth == args.s.width) {
        launch_rows(launch, &args);
        return;
    }
    tr__cuda_launch(launch, &tr__cuda_function_rms_norm, unit_grid(&args.s), &args,
                    sizeof args);
}

// ---- backward

// Rows whose terms one block sums.
static int64_t part_rows(const tr_cuda_rms_norm_sizes *s) {
    int64_t part = tr__ceil_div(s->rows, PARTS_MOST);
    return part > PART_LEAST ? part : PART_LEAST;
}

// Both dx and dweight are wanted, of whole rows: they come from one reading of dy and
// x.
static bool is_one_reading(const tr_op_desc *desc, const tr_cuda_rms_norm_sizes *s) {
    return desc->out[0].dtype != TR_NONE && desc->out[1].dtype != TR_NONE &&
           s->depth == s->width && tr__cuda_norm_has_both(s->width);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_cuda_rms_norm_sizes s = sizes_of(desc);
    int64_t parts = tr__ceil_div(s.rows, part_rows(&s));
    return desc->out[1].dtype == TR_NONE ? 0
           : is_one_reading(desc, &s)    ? tr__cuda_norm_both_bytes(s.rows, s.width)
                                         : (size_t)(parts * s.weights) * sizeof(float);
}

// A thread's weights are of one head.
static tr_cuda_grid weight_grid(const tr_cuda_rms_norm_sizes *s, int64_t parts) {
    return s->depth % TR_CUDA_VECTOR == 0 ? tr__cuda_vector_columns(s->weights, parts)
                                          : tr__cuda_columns(s->weights, parts);
}

static void launch_weight(const tr_launch *launch,
                          tr_cuda_rms_norm_backward_args *args) {
    int64_t parts = tr__ceil_div(args->s.rows, args->part);
    tr__cuda_launch(launch, &tr__cuda_function_rms_norm_weight,
                    weight_grid(&args->s, parts), args, sizeof *args);
    tr__cuda_column_sums(launch,
                         (tr_cuda_column_sums_args){.x = args->parts,
                                                    .rows = parts,
                                                    .width = args->s.weights,
                                                    .pitch = args->s.weights,
                                                    .real = TR_F32,
                                                    .sums = launch->out[1],
                                                    .add = launch->accumulate >> 1 & 1},
                         NULL);
}

static void launch_both(const tr_op_desc *desc, const tr_launch *launch,
                        const tr_cuda_rms_norm_sizes *s) {
    const tr_cuda_norm_backward norm = {.rows = s->rows,
                                        .width = s->width,
                                        .real = (int32_t)desc->in[0].dtype,
                                        .dy = launch->in[0],
                                        .x = launch->in[1],
                                        .rstd = launch->in[2],
                                        .weight = launch->in[3],
                                        .dx = launch->out[0],
                                        .dweight = launch->out[1],
                                        .add_dx = launch->accumulate & 1,
                                        .add_dweight = launch->accumulate >> 1 & 1};
    tr__cuda_norm_both(launch, &tr__cuda_function_rms_norm_both, &norm,
                       launch->workspace);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_rms_norm_backward_args args = {.s = sizes_of(desc),
                                           .dy = launch->in[0],
                                           .x = launch->in[1],
                                           .rstd = launch->in[2],
                                           .weight = launch->in[3],
                                           .dx = launch->out[0],
                                           .parts = launch->workspace,
                                           .add_dx = launch->accumulate & 1};
    args.part = part_rows(&args.s);
    if (is_one_reading(desc, &args.s) && args.dx && launch->out[1]) {
        launch_both(desc, launch, &args.s);
        return;
    }
    if (launch->out[1]) {
        launch_weight(launch, &args);
    }
    if (args.dx) {
        tr__cuda_launch(launch, &tr__cuda_function_rms_norm_backward,
                        unit_grid(&args.s), &args, sizeof args);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 1 << 1); // rstd
}

static bool supports_backward(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 1 << 2, 1 << 1); // rstd; dweight
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 6, out);
}

static const tr_kernel norm = {
    .name = "rms_norm.cuda", .supports = supports, .cost = cost, .launch = launch_norm};
static const tr_kernel backward = {.name = "rms_norm_backward.cuda",
                                   .supports = supports_backward,
                                   .cost = cost,
                                   .workspace = workspace,
                                   .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_rms_norm[] = {
    {&tr__op_rms_norm, &norm},
    {&tr__op_rms_norm_backward, &backward},
    {NULL, NULL},
};
