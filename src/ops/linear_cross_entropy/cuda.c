#include "ops/linear_cross_entropy/cuda.h"

#include "base/checked.h"
#include "ops/linear_cross_entropy/cuda_head.h"
#include "ops/linear_cross_entropy/operands.h"

#include <assert.h>

extern const tr_cuda_kernels tr__cuda_kernels_linear_cross_entropy[];
extern tr_cuda_function tr__cuda_function_cross_entropy;
extern tr_cuda_function tr__cuda_function_add_row_sums;
extern tr_cuda_function tr__cuda_function_last_targets;
extern tr_cuda_function tr__cuda_function_take_rows, tr__cuda_function_clear_rows;

static_assert(sizeof(tr_cuda_row_sums) == TR_SUMS * sizeof(double),
              "a row has what the loss sums");

// Rows whose logits are made at once: about so many bytes, unless the attribute says.
enum { CHUNK_BYTES = 64 << 20 };

int64_t tr__cuda_head_rows(const tr_op_desc *desc) {
    tr_linear_dims d = tr__lce_dims(desc);
    int64_t asked = tr__lce_attr(desc).chunk_rows;
    int64_t rows = CHUNK_BYTES / (d.out * (int64_t)sizeof(float));
    rows = asked > 0 ? asked : rows > 0 ? rows : 1;
    return tr__min_i64(rows, d.rows);
}

// The logits of a chunk, and what its rows add to the sums.
typedef struct room {
    tr_cuda_row_sums *each; // [chunk]
    float *logits;          // [chunk, V]
} room;

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    size_t rows = (size_t)tr__cuda_head_rows(desc);
    return rows *
           (sizeof(tr_cuda_row_sums) + (size_t)tr__lce_dims(desc).out * sizeof(float));
}

static room room_of(const tr_op_desc *desc, const tr_launch *launch) {
    tr_cuda_row_sums *each = launch->workspace;
    return (room){each, (float *)(each + tr__cuda_head_rows(desc))};
}

static void add_bias(const tr_launch *launch, const tr_linear_dims *d, float *y) {
    if (launch->in[HEAD_BIAS]) {
        tr__cuda_bias(launch, (tr_cuda_bias_args){.y = y,
                                                  .bias = launch->in[HEAD_BIAS],
                                                  .count = d->rows * d->out,
                                                  .width = d->out});
    }
}

void tr__cuda_head_logits(const tr_launch *launch, const tr_linear_dims *d,
                          int64_t first, float *logits) {
    const float *x = (const float *)launch->in[HEAD_X] + first * d->in;
    tr__cuda_linear(launch, d, x, launch->in[HEAD_WEIGHT], logits, false);
    add_bias(launch, d, logits);
}

static void add_loss(const tr_launch *launch, const tr_linear_dims *d, int64_t first,
                     const room *r, bool gradients, double *sums) {
    tr_cuda_cross_entropy_args rows = {
        .logits = r->logits,
        .targets = (const int32_t *)launch->in[HEAD_TARGETS] + first,
        .width = d->out,
        .seed = gradients ? launch->run->loss_seed : 0,
        .gradients = gradients,
        .each = r->each};
    tr_cuda_add_row_sums_args all = {.each = r->each, .rows = d->rows, .sums = sums};
    tr__cuda_launch(launch, &tr__cuda_function_cross_entropy,
                    tr__cuda_blocks(d->rows, TR_CUDA_THREADS), &rows, sizeof rows);
    tr__cuda_launch(launch, &tr__cuda_function_add_row_sums, tr__cuda_blocks(1, 1),
                    &all, sizeof all);
}

static void launch_forward(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    tr_linear_dims d = tr__lce_dims(desc), part = d;
    room r = room_of(desc, launch);
    int64_t chunk = tr__cuda_head_rows(desc);
    for (int64_t first = 0; first < d.rows; first += chunk) {
        part.rows = tr__min_i64(chunk, d.rows - first);
        tr__cuda_head_logits(launch, &part, first, r.logits);
        add_loss(launch, &part, first, &r, false, launch->out[0]);
    }
}

void tr__cuda_head_gradients(const tr_launch *launch, const tr_linear_dims *d,
                             int64_t first, const float *gradients) {
    const float *x = (const float *)launch->in[HEAD_X] + first * d->in;
    uint32_t add = launch->accumulate;
    float *dx = launch->out[HEAD_DX];
    if (dx) {
        tr__cuda_linear_input(launch, d, gradients, launch->in[HEAD_WEIGHT],
                              dx + first * d->in, add >> HEAD_DX & 1);
    }
    if (launch->out[HEAD_DWEIGHT]) {
        tr__cuda_linear_weight(launch, d, gradients, x, launch->out[HEAD_DWEIGHT],
                               first > 0 || add >> HEAD_DWEIGHT & 1);
    }
    if (launch->out[HEAD_DBIAS]) {
        tr__cuda_column_sums(launch, (tr_cuda_column_sums_args){
                                         .x = gradients,
                                         .rows = d->rows,
                                         .width = d->out,
                                         .sums = launch->out[HEAD_DBIAS],
                                         .add = first > 0 || add >> HEAD_DBIAS & 1});
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_linear_dims d = tr__lce_dims(desc), part = d;
    room r = room_of(desc, launch);
    int64_t chunk = tr__cuda_head_rows(desc);
    for (int64_t first = 0; first < d.rows; first += chunk) {
        part.rows = tr__min_i64(chunk, d.rows - first);
        tr__cuda_head_logits(launch, &part, first, r.logits);
        add_loss(launch, &part, first, &r, true, launch->out[HEAD_SUMS]);
        tr__cuda_head_gradients(launch, &part, first, r.logits);
    }
}

// ---- logits

// The rows that are asked for, of each sample, and which they are.
static size_t last_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    size_t samples = (size_t)desc->in[HEAD_X].shape.dim[0];
    return samples * (sizeof(int64_t) + (size_t)tr__lce_dims(desc).in * sizeof(float));
}

// x = the last row of each sample that has a target.
static void take_last(const tr_launch *launch, const tr_linear_dims *d, int64_t samples,
                      int64_t *rows, float *x) {
    int64_t length = d->rows / samples;
    tr_cuda_last_targets_args find = {.targets = launch->in[HEAD_TARGETS],
                                      .samples = samples,
                                      .length = length,
                                      .rows = rows};
    tr_cuda_take_rows_args take = {.x = launch->in[HEAD_X],
                                   .rows = rows,
                                   .samples = samples,
                                   .length = length,
                                   .width = d->in,
                                   .to = x};
    tr__cuda_launch(launch, &tr__cuda_function_last_targets, tr__cuda_each(samples),
                    &find, sizeof find);
    tr__cuda_launch(launch, &tr__cuda_function_take_rows,
                    tr__cuda_each(samples * d->in), &take, sizeof take);
}

static void launch_last(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_linear_dims d = tr__lce_dims(desc), part = d;
    int64_t samples = desc->in[HEAD_X].shape.dim[0], *rows = launch->workspace;
    float *x = (float *)(rows + samples), *y = launch->out[0];
    part.rows = samples;
    take_last(launch, &d, samples, rows, x);
    tr__cuda_linear(launch, &part, x, launch->in[HEAD_WEIGHT], y, false);
    add_bias(launch, &part, y);
    tr_cuda_clear_rows_args clear = {
        .rows = rows, .samples = samples, .width = d.out, .y = y};
    tr__cuda_launch(launch, &tr__cuda_function_clear_rows,
                    tr__cuda_each(samples * d.out), &clear, sizeof clear);
}

static void launch_rows(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_linear_dims d = tr__lce_dims(desc);
    tr__cuda_head_logits(launch, &d, 0, launch->out[0]);
}

static bool supports(const tr_op_desc *desc) {
    return tr__lce_supports(desc, TR_F32);
}

static bool supports_logits(const tr_op_desc *desc) {
    return tr__lce_supports(desc, TR_F32) && !(desc->accumulate & 1);
}

static const tr_kernel forward = {.name = "linear_cross_entropy.cuda",
                                  .supports = supports,
                                  .cost = tr__lce_forward_cost,
                                  .workspace = workspace,
                                  .launch = launch_forward};
static const tr_kernel backward = {.name = "linear_cross_entropy_backward.cuda",
                                   .supports = supports,
                                   .cost = tr__lce_backward_cost,
                                   .workspace = workspace,
                                   .launch = launch_backward};
static const tr_kernel last = {.name = "linear_cross_entropy_logits.cuda",
                               .supports = supports_logits,
                               .cost = tr__lce_logits_cost,
                               .workspace = last_workspace,
                               .launch = launch_last};
static const tr_kernel all = {.name = "linear_cross_entropy_logits_rows.cuda",
                              .supports = supports_logits,
                              .cost = tr__lce_forward_cost,
                              .launch = launch_rows};

const tr_cuda_kernels tr__cuda_kernels_linear_cross_entropy[] = {
    {&tr__op_linear_cross_entropy, &forward},
    {&tr__op_linear_cross_entropy_backward, &backward},
    {&tr__op_linear_cross_entropy_logits, &last},
    {&tr__op_linear_cross_entropy_logits_rows, &all},
    {NULL, NULL},
};
