#include "ops/nn/linear_cross_entropy/cuda.h"

#include "base/checked.h"
#include "base/half.h"
#include "ops/flat/copy/cuda_copy.h"
#include "ops/nn/linear_cross_entropy/cuda_head.h"
#include "ops/nn/linear_cross_entropy/cuda_sums.h"
#include "ops/nn/linear_cross_entropy/operands.h"

#include <assert.h>

extern const tr_cuda_kernels tr__cuda_kernels_linear_cross_entropy[];
extern tr_cuda_function tr__cuda_function_cross_entropy;
extern tr_cuda_function tr__cuda_function_add_row_sums;
extern tr_cuda_function tr__cuda_function_last_targets;
extern tr_cuda_function tr__cuda_function_take_rows, tr__cuda_function_clear_rows;

static_assert(sizeof(tr_cuda_row_sums) == TR_SUMS * sizeof(double),
              "a row has what the loss sums");

void tr__cuda_add_row_sums(const tr_launch *launch, const tr_cuda_row_sums *each,
                           int64_t rows, double *sums) {
    const tr_cuda_add_row_sums_args args = {.each = each, .rows = rows, .sums = sums};
    tr__cuda_launch(launch, &tr__cuda_function_add_row_sums,
                    tr__cuda_blocks(1, TR_CUDA_THREADS), &args, sizeof args);
}

enum {
    // Logits that are made at once, in whole tiles of a product, unless the plan or the
    // attribute says. Each chunk reads and writes the gradient of the weight: in the
    // time that an H200 takes for that, it multiplies 650 rows.
    CHUNK_BYTES = 256 << 20,
    TILE_ROWS = 128,
    // Fewer are classes, not words: to fill them up would multiply the work.
    PADDED_LEAST = 32,
};

// The weight's rows are filled up to as many as a row of logits takes: products whose
// extents are anything, as 50,257, are slow on tensor cores, or not on them.

int64_t tr__cuda_logits_row(const tr_linear_dims *d) {
    return tr__lce_logits_row(d->out);
}

tr_dtype tr__cuda_logits_real(const tr_op_desc *desc) {
    bool kept = tr__lce_keeps_logits(desc) || tr__lce_is_given_logits(desc);
    bool half = desc->in[HEAD_X].dtype == TR_BF16 && !desc->f32_logits;
    return half && !kept ? TR_BF16 : TR_F32;
}

// Bytes from a row of logits to the next.
static int64_t row_bytes(const tr_op_desc *desc) {
    tr_linear_dims d = tr__lce_dims(desc);
    return tr__cuda_logits_row(&d) *
           (int64_t)tr_dtype_bytes(tr__cuda_logits_real(desc));
}

// As few chunks as there is room for, each of whole tiles, and all of them as long as
// these allow.
int64_t tr__cuda_head_rows(const tr_op_desc *desc) {
    int64_t rows = tr__lce_dims(desc).rows, asked = tr__lce_attr(desc).chunk_rows;
    int64_t bytes = desc->logits_bytes > 0 ? desc->logits_bytes : CHUNK_BYTES;
    int64_t most = tr__max_i64(bytes / row_bytes(desc), 1);
    if (asked <= 0 && most > TILE_ROWS) {
        int64_t tiles = most / TILE_ROWS, all = tr__ceil_div(rows, TILE_ROWS);
        most = tr__ceil_div(all, tr__ceil_div(all, tiles)) * TILE_ROWS;
    }
    return tr__min_i64(asked > 0 ? asked : most, rows);
}

size_t tr__cuda_logits_bytes(const tr_op_desc *desc) {
    return (size_t)(tr__cuda_head_rows(desc) * row_bytes(desc));
}

int64_t tr__cuda_head_padding(const tr_op_desc *desc, int input) {
    tr_linear_dims d = tr__lce_dims(desc);
    bool rows =
        input == HEAD_WEIGHT && d.layout == TR_WEIGHT_OUT_IN && d.out >= PADDED_LEAST;
    return rows ? (tr__cuda_logits_row(&d) - d.out) * d.in : 0;
}

int64_t tr__cuda_head_padded(const tr_op_desc *desc) {
    tr_linear_dims d = tr__lce_dims(desc);
    return desc->in_padded >> HEAD_WEIGHT & 1 ? tr__cuda_logits_row(&d) : d.out;
}

// The dims of products: with what is filled up.
static tr_linear_dims padded_dims(const tr_op_desc *desc, const tr_linear_dims *part) {
    tr_linear_dims d = *part;
    d.out = tr__cuda_head_padded(desc);
    return d;
}

// The logits of a chunk, then what its rows add to the sums.
typedef struct room {
    void *logits;           // [chunk, V], in rows of tr__cuda_logits_row
    tr_cuda_row_sums *each; // [chunk]
} room;

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return tr__cuda_logits_bytes(desc) +
           (size_t)tr__cuda_head_rows(desc) * sizeof(tr_cuda_row_sums);
}

static room room_of(const tr_op_desc *desc, const tr_launch *launch) {
    char *each = (char *)launch->workspace + tr__cuda_logits_bytes(desc);
    return (room){launch->workspace, (tr_cuda_row_sums *)(void *)each};
}

// Rows of y are so many elements apart.
static void add_bias(const tr_op_desc *desc, const tr_launch *launch,
                     const tr_linear_dims *d, tr_dtype real, void *y, int64_t row) {
    if (launch->in[HEAD_BIAS]) {
        tr__cuda_bias(launch,
                      (tr_cuda_bias_args){.y = y,
                                          .bias = launch->in[HEAD_BIAS],
                                          .count = d->rows * d->out,
                                          .width = d->out,
                                          .pitch = row,
                                          .real = (int32_t)desc->in[HEAD_X].dtype,
                                          .y_real = (int32_t)real});
    }
}

// Row `first` of x, or of dx.
static void *row_at(const tr_op_desc *desc, const tr_linear_dims *d, const void *x,
                    int64_t first) {
    size_t bytes = tr_dtype_bytes(desc->in[HEAD_X].dtype);
    return x ? (char *)x + (size_t)(first * d->in) * bytes : NULL;
}

// x times the weight: logits of that type, whose rows are so many elements apart.
static void make_logits(const tr_op_desc *desc, const tr_launch *launch,
                        const tr_linear_dims *d, const void *x, tr_dtype real,
                        void *logits, int64_t row) {
    tr__cuda_linear(launch, d,
                    (tr_cuda_factors){.a = x,
                                      .b = launch->in[HEAD_WEIGHT],
                                      .c = logits,
                                      .real = desc->in[HEAD_X].dtype,
                                      .c_real = real,
                                      .c_row = row});
}

// Those of a chunk, with what is filled up, which has no bias.
static void make_chunk(const tr_op_desc *desc, const tr_launch *launch,
                       const tr_linear_dims *part, const void *x, void *logits) {
    tr_linear_dims d = padded_dims(desc, part);
    tr_dtype real = tr__cuda_logits_real(desc);
    int64_t row = tr__cuda_logits_row(part);
    make_logits(desc, launch, &d, x, real, logits, row);
    add_bias(desc, launch, part, real, logits, row);
}

// Bytes of a row of logits that a block keeps between their reading and the writing of
// their gradients; 0: it reads them again. Two blocks at a time have room for that.
static int64_t kept_bytes(const tr_op_desc *desc, bool gradients) {
    enum { ROOM = 48 << 10, ROOM_90 = 110 << 10 }; // of 100 KiB, and of 227
    int64_t most = desc->target.level >= TR_CUDA_SM_90 ? ROOM_90 : ROOM;
    return gradients && row_bytes(desc) <= most ? row_bytes(desc) : 0;
}

static void add_loss(const tr_op_desc *desc, const tr_launch *launch,
                     const tr_linear_dims *d, int64_t first, double *sums,
                     bool gradients) {
    room r = room_of(desc, launch);
    tr_cuda_grid grid = tr__cuda_blocks(d->rows, TR_CUDA_LOGITS_THREADS);
    grid.shared = kept_bytes(desc, gradients);
    tr_cuda_cross_entropy_args rows = {
        .logits = r.logits,
        .targets = (const int32_t *)launch->in[HEAD_TARGETS] + first,
        .width = d->out,
        .padded = tr__cuda_logits_row(d),
        .pitch = tr__cuda_logits_row(d),
        .seed = gradients ? launch->run->loss_seed : 0,
        .gradients = gradients,
        .kept = grid.shared > 0,
        .real = (int32_t)desc->in[HEAD_X].dtype,
        .logits_real = (int32_t)tr__cuda_logits_real(desc),
        .each = r.each};
    tr__cuda_launch(launch, &tr__cuda_function_cross_entropy, grid, &rows, sizeof rows);
    tr__cuda_add_row_sums(launch, r.each, d->rows, sums);
}

// Gradients of 16 bits may lie in rows of f32: there is room for two in the place of
// one.
static int64_t gradient_row(const tr_op_desc *desc) {
    return row_bytes(desc) / (int64_t)tr_dtype_bytes(desc->in[HEAD_X].dtype);
}

// The gradients of what is filled up are zeros times x, which are none where x is not
// finite: the step is skipped then, and these are zeros all the same.
static void clear_padding(const tr_op_desc *desc, const tr_launch *launch) {
    float *dweight = launch->out[HEAD_DWEIGHT];
    int64_t count = tr_shape_count(desc->in[HEAD_WEIGHT].shape);
    int64_t behind = tr__cuda_head_padding(desc, HEAD_WEIGHT);
    if (dweight && desc->out_padded >> HEAD_DWEIGHT & 1) {
        tr__cuda_clear(launch, dweight + count, behind * (int64_t)sizeof(float));
    }
}

static void give_gradients(const tr_op_desc *desc, const tr_launch *launch,
                           const tr_linear_dims *d, int64_t first,
                           const void *gradients) {
    uint32_t add = launch->accumulate;
    tr_dtype real = desc->in[HEAD_X].dtype;
    tr_linear_dims padded = padded_dims(desc, d);
    tr_cuda_factors f = {.a = gradients, .real = real, .a_row = gradient_row(desc)};
    if (launch->out[HEAD_DX]) {
        f.b = launch->in[HEAD_WEIGHT];
        f.c = row_at(desc, d, launch->out[HEAD_DX], first);
        f.c_real = real;
        f.add = add >> HEAD_DX & 1;
        tr__cuda_linear_input(launch, &padded, f);
    }
    if (launch->out[HEAD_DWEIGHT]) {
        f.b = row_at(desc, d, launch->in[HEAD_X], first);
        f.c = launch->out[HEAD_DWEIGHT];
        f.c_real = TR_F32;
        f.add = first > 0 || add >> HEAD_DWEIGHT & 1;
        tr__cuda_linear_weight(launch,
                               desc->out_padded >> HEAD_DWEIGHT & 1 ? &padded : d, f);
    }
    if (launch->out[HEAD_DBIAS]) {
        tr__cuda_column_sums(
            launch,
            (tr_cuda_column_sums_args){.x = gradients,
                                       .rows = d->rows,
                                       .width = d->out,
                                       .pitch = f.a_row,
                                       .real = (int32_t)real,
                                       .sums = launch->out[HEAD_DBIAS],
                                       .add = first > 0 || add >> HEAD_DBIAS & 1},
            NULL);
    }
}

static void *kept_at(const tr_op_desc *desc, const tr_cuda_head_walk *walk,
                     int64_t first) {
    return (char *)walk->kept + first * row_bytes(desc);
}

static void copy_kept(const tr_op_desc *desc, const tr_launch *launch,
                      const tr_linear_dims *part, const void *from, void *to) {
    tr__cuda_copy(launch,
                  (tr_cuda_copy_args){.x = from,
                                      .y = to,
                                      .count = part->rows * tr__cuda_logits_row(part),
                                      .real = (int32_t)tr__cuda_logits_real(desc)});
}

// Returns where the chunk's logits lie.
static void *take_logits(const tr_op_desc *desc, const tr_launch *launch,
                         const tr_cuda_head_walk *walk, const tr_linear_dims *part,
                         int64_t first) {
    tr_linear_dims d = tr__lce_dims(desc);
    bool given = walk->kept && walk->gradients;
    void *logits = walk->kept && !given ? kept_at(desc, walk, first) : walk->room;
    if (given) {
        copy_kept(desc, launch, part, kept_at(desc, walk, first), logits);
    } else {
        make_chunk(desc, launch, part, row_at(desc, &d, launch->in[HEAD_X], first),
                   logits);
    }
    return logits;
}

void tr__cuda_head_chunks(const tr_op_desc *desc, const tr_launch *launch,
                          tr_cuda_head_walk walk) {
    tr_linear_dims d = tr__lce_dims(desc), part = d;
    int64_t chunk = tr__cuda_head_rows(desc);
    for (int64_t first = 0; first < d.rows; first += chunk) {
        part.rows = tr__min_i64(chunk, d.rows - first);
        void *logits = take_logits(desc, launch, &walk, &part, first);
        walk.take(desc, launch, &part, first, logits);
        if (walk.gradients) {
            give_gradients(desc, launch, &part, first, logits);
        }
    }
    if (walk.gradients) {
        clear_padding(desc, launch);
    }
}

static void take_loss(const tr_op_desc *desc, const tr_launch *launch,
                      const tr_linear_dims *part, int64_t first, void *logits) {
    (void)logits; // the room's
    add_loss(desc, launch, part, first, launch->out[0], false);
}

static void take_gradients(const tr_op_desc *desc, const tr_launch *launch,
                           const tr_linear_dims *part, int64_t first, void *logits) {
    (void)logits; // the room's
    add_loss(desc, launch, part, first, launch->out[HEAD_SUMS], true);
}

static void launch_forward(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    tr__cuda_head_chunks(
        desc, launch,
        (tr_cuda_head_walk){.room = room_of(desc, launch).logits, .take = take_loss});
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr__cuda_head_chunks(desc, launch,
                         (tr_cuda_head_walk){.room = room_of(desc, launch).logits,
                                             .take = take_gradients,
                                             .gradients = true});
}

// ---- logits

// The rows that are asked for, of each sample, and which they are.
static size_t last_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    size_t samples = (size_t)desc->in[HEAD_X].shape.dim[0];
    return samples * (sizeof(int64_t) + (size_t)tr__lce_dims(desc).in * sizeof(float));
}

// x = the last row of each sample that has a target.
static void take_last(const tr_op_desc *desc, const tr_launch *launch, int64_t samples,
                      int64_t *rows, void *x) {
    tr_linear_dims dims = tr__lce_dims(desc), *d = &dims;
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
                                   .to = x,
                                   .real = (int32_t)desc->in[HEAD_X].dtype};
    tr__cuda_launch(launch, &tr__cuda_function_last_targets, tr__cuda_each(samples),
                    &find, sizeof find);
    tr__cuda_launch(launch, &tr__cuda_function_take_rows,
                    tr__cuda_each(samples * d->in), &take, sizeof take);
}

static void launch_last(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_linear_dims d = tr__lce_dims(desc), part = d;
    int64_t samples = desc->in[HEAD_X].shape.dim[0], *rows = launch->workspace;
    void *x = rows + samples;
    float *y = launch->out[0];
    part.rows = samples;
    take_last(desc, launch, samples, rows, x);
    make_logits(desc, launch, &part, x, TR_F32, y, d.out);
    add_bias(desc, launch, &part, TR_F32, y, d.out);
    tr_cuda_clear_rows_args clear = {
        .rows = rows, .samples = samples, .width = d.out, .y = y};
    tr__cuda_launch(launch, &tr__cuda_function_clear_rows,
                    tr__cuda_each(samples * d.out), &clear, sizeof clear);
}

static void launch_rows(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_linear_dims d = tr__lce_dims(desc);
    make_logits(desc, launch, &d, launch->in[HEAD_X], TR_F32, launch->out[0], d.out);
    add_bias(desc, launch, &d, TR_F32, launch->out[0], d.out);
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[HEAD_X].dtype;
    return tr__dtype_is_real(real) && tr__lce_supports(desc, real);
}

static bool supports_logits(const tr_op_desc *desc) {
    return supports(desc) && desc->out[0].dtype == TR_F32 && !(desc->accumulate & 1);
}

static const tr_kernel forward = {.name = "linear_cross_entropy.cuda",
                                  .supports = supports,
                                  .cost = tr__lce_forward_cost,
                                  .workspace = workspace,
                                  .launch = launch_forward,
                                  .padding = tr__cuda_head_padding};
static const tr_kernel backward = {.name = "linear_cross_entropy_backward.cuda",
                                   .supports = supports,
                                   .cost = tr__lce_backward_cost,
                                   .workspace = workspace,
                                   .launch = launch_backward,
                                   .padding = tr__cuda_head_padding};
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
