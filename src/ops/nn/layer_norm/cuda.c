#include "ops/nn/layer_norm/cuda_norm.h"

#include "base/checked.h"
#include "ops/nn/layer_norm/layer_norm.h"
#include "ops/nn/linear/cuda_linear.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_layer_norm[];
extern tr_cuda_function tr__cuda_function_layer_norm_narrow;
extern tr_cuda_function tr__cuda_function_layer_norm_wide;
extern tr_cuda_function tr__cuda_function_residual_norm_narrow;
extern tr_cuda_function tr__cuda_function_residual_norm_wide;
extern tr_cuda_function tr__cuda_function_layer_norm_rows_backward;
extern tr_cuda_function tr__cuda_function_layer_norm_columns_backward;
extern tr_cuda_function tr__cuda_function_layer_norm_both;

static tr_cuda_norm norm_of(const tr_op_desc *desc) {
    const tr_layer_norm_attr *attr = (const void *)desc->attr;
    tr_shape shape = desc->in[0].shape;
    return (tr_cuda_norm){.rows = tr__shape_rows(shape),
                          .width = tr__shape_width(shape),
                          .epsilon = attr->epsilon,
                          .real = (int32_t)desc->in[0].dtype};
}

static void launch_norm(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_norm norm = norm_of(desc);
    norm.x = launch->in[0];
    norm.weight = launch->in[1];
    norm.bias = launch->in[2];
    norm.y = launch->out[0];
    norm.mean = launch->out[1];
    norm.rstd = launch->out[2];
    norm.add_y = launch->accumulate & 1;
    norm.add_mean = launch->accumulate >> 1 & 1;
    norm.add_rstd = launch->accumulate >> 2 & 1;
    tr__cuda_norm_rows(launch, &tr__cuda_function_layer_norm_narrow,
                       &tr__cuda_function_layer_norm_wide, &norm);
}

static void launch_residual(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    const tr_layer_norm_attr *attr = (const void *)desc->attr;
    tr_dropout_place x = tr__dropout_place(&attr->dropout, desc->in[0].shape);
    tr_cuda_norm norm = norm_of(desc);
    norm.r = launch->in[0];
    norm.x = launch->in[1];
    norm.weight = launch->in[2];
    norm.bias = launch->in[3];
    norm.sum = launch->out[0];
    norm.y = launch->out[1];
    norm.mean = launch->out[2];
    norm.rstd = launch->out[3];
    norm.add_sum = launch->accumulate & 1;
    norm.add_y = launch->accumulate >> 1 & 1;
    norm.add_mean = launch->accumulate >> 2 & 1;
    norm.add_rstd = launch->accumulate >> 3 & 1;
    norm.dropout = (tr_cuda_dropout){.run = *launch->run,
                                     .draw_id = attr->dropout.draw_id,
                                     .probability = attr->dropout.probability,
                                     .per_sample = x.per_sample,
                                     .first = x.first};
    tr__cuda_norm_rows(launch, &tr__cuda_function_residual_norm_narrow,
                       &tr__cuda_function_residual_norm_wide, &norm);
}

static void launch_columns(const tr_launch *launch, const tr_cuda_norm_backward *norm) {
    int64_t parts = tr__ceil_div(norm->rows, norm->part);
    tr__cuda_launch(launch, &tr__cuda_function_layer_norm_columns_backward,
                    tr__cuda_vector_columns(norm->width, parts), norm, sizeof *norm);
}

// The parts' sums, [parts, width], to those of all rows; sums: NULL: not wanted.
static void add_parts(const tr_launch *launch, const tr_cuda_norm_backward *norm,
                      const float *parts, float *sums, bool add) {
    if (sums) {
        tr__cuda_column_sums(
            launch,
            (tr_cuda_column_sums_args){.x = parts,
                                       .rows = tr__ceil_div(norm->rows, norm->part),
                                       .width = norm->width,
                                       .pitch = norm->width,
                                       .real = TR_F32,
                                       .sums = sums,
                                       .add = add},
            NULL);
    }
}

// In two phases where there are many rows.
static void put_columns(const tr_launch *launch, tr_cuda_norm_backward norm) {
    float *parts = launch->workspace;
    tr_cuda_norm_backward all = norm;
    norm.part = tr__cuda_part_rows(norm.rows);
    int64_t count = tr__ceil_div(norm.rows, norm.part) * norm.width;
    if (norm.part >= norm.rows) {
        launch_columns(launch, &norm);
        return;
    }
    norm.dweight = all.dweight ? parts : NULL;
    norm.dbias = all.dbias ? parts + count : NULL;
    norm.add_dweight = norm.add_dbias = false;
    launch_columns(launch, &norm);
    add_parts(launch, &norm, parts, all.dweight, all.add_dweight);
    add_parts(launch, &norm, parts + count, all.dbias, all.add_dbias);
}

// Both dx and a sum are wanted: they come from one reading of dy and x.
static bool is_one_reading(const tr_op_desc *desc) {
    bool sums = desc->out[1].dtype != TR_NONE || desc->out[2].dtype != TR_NONE;
    return desc->out[0].dtype != TR_NONE && sums &&
           tr__cuda_norm_has_both(tr__shape_width(desc->in[0].shape));
}

static size_t backward_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_shape shape = desc->in[0].shape;
    bool wanted = desc->out[1].dtype != TR_NONE || desc->out[2].dtype != TR_NONE;
    int64_t rows = tr__shape_rows(shape), width = tr__shape_width(shape);
    return !wanted                ? 0
           : is_one_reading(desc) ? tr__cuda_norm_both_bytes(rows, width)
                                  : 2 * tr__cuda_column_sums_bytes(rows, width);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_shape shape = desc->in[0].shape;
    tr_cuda_norm_backward norm = {.rows = tr__shape_rows(shape),
                                  .width = tr__shape_width(shape),
                                  .real = (int32_t)desc->in[0].dtype,
                                  .dy = launch->in[0],
                                  .x = launch->in[1],
                                  .mean = launch->in[2],
                                  .rstd = launch->in[3],
                                  .weight = launch->in[4],
                                  .dx = launch->out[0],
                                  .dweight = launch->out[1],
                                  .dbias = launch->out[2],
                                  .add_dx = launch->accumulate & 1,
                                  .add_dweight = launch->accumulate >> 1 & 1,
                                  .add_dbias = launch->accumulate >> 2 & 1};
    if (is_one_reading(desc) && norm.dx && (norm.dweight || norm.dbias)) {
        tr__cuda_norm_both(launch, &tr__cuda_function_layer_norm_both, &norm,
                           launch->workspace);
        return;
    }
    if (norm.dx) {
        int64_t blocks = tr__ceil_div(norm.rows, TR_CUDA_NORM_ROWS);
        tr__cuda_launch(launch, &tr__cuda_function_layer_norm_rows_backward,
                        tr__cuda_blocks(blocks, TR_CUDA_NORM_ROWS * TR_CUDA_LANES),
                        &norm, sizeof norm);
    }
    if (norm.dweight || norm.dbias) {
        put_columns(launch, norm);
    }
}

// mean and rstd; dweight and dbias: f32
static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 1 << 1 | 1 << 2);
}

static bool supports_residual(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 1 << 2 | 1 << 3);
}

static bool supports_backward(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 1 << 2 | 1 << 3, 1 << 1 | 1 << 2);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

static const tr_kernel layer_norm = {.name = "layer_norm.cuda",
                                     .supports = supports,
                                     .cost = cost,
                                     .launch = launch_norm};
static const tr_kernel residual_norm = {.name = "residual_norm.cuda",
                                        .supports = supports_residual,
                                        .cost = cost,
                                        .launch = launch_residual};
static const tr_kernel backward = {.name = "layer_norm_backward.cuda",
                                   .supports = supports_backward,
                                   .cost = cost,
                                   .workspace = backward_workspace,
                                   .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_layer_norm[] = {
    {&tr__op_layer_norm, &layer_norm},
    {&tr__op_residual_norm, &residual_norm},
    {&tr__op_layer_norm_backward, &backward},
    {NULL, NULL},
};
