// How the head cuts its rows into chunks, the products of a chunk, and where things lie
// in its workspace.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_CPU_CHUNKS_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_CPU_CHUNKS_H

#include "ops/nn/linear/cpu_products.h"
#include "ops/nn/linear_cross_entropy/operands.h"

// The products of chunks of one size; NULL where not wanted.
typedef struct tr_lce_products {
    tr_linear_dims dims; // rows: of the chunk; 0: there is no such chunk
    tr_matmul *output, *input, *weight;
} tr_lce_products;

typedef struct tr_lce_chunks {
    tr_linear_dims dims;        // rows: all
    int64_t rows;               // of every chunk but perhaps the last
    tr_lce_products full, last; // last: of the last chunk, where it is smaller
    // Of chunks that are gathered from rows with a target: smaller than a full one, so
    // that little is computed for nothing. None: rows are not gathered.
    tr_lce_products few;
    // Elements from one row of logits to the next.
    int64_t logits_row;
    // Offsets in the workspace; the logits [rows, V] f32 are at 0. Their gradients, of
    // the type of x, take their place row by row: dims.dy_row apart.
    size_t losses;  // [rows] f64
    size_t correct; // [rows] i32
    size_t list;    // [dims.rows] i32, the rows with a target; if rows are gathered,
    size_t targets; // [rows] i32, of the chunk,
    size_t x, dx;   // [rows, C] of the type of x, its rows and their gradients
    size_t scratch; // of the products and the sums for dbias
    size_t bytes;
} tr_lce_chunks;

// For an op whose inputs begin like the head's, and whose results, with `backward`,
// like those of tr__op_linear_cross_entropy_backward. Where the op is given its logits
// there is no product for them. Freed by tr__lce_chunks_release.
tr_status tr__lce_chunks_create(const tr_op_desc *desc, bool backward,
                                tr_lce_chunks **out, tr_error *err);
// tr_kernel.cost: of the rows that are computed where so many have a target as the
// attributes say.
void tr__lce_chunks_forward_cost(const tr_op_desc *desc, tr_cost *cost);
void tr__lce_chunks_backward_cost(const tr_op_desc *desc, tr_cost *cost);
// tr_kernel.workspace and tr_kernel.release where the kernel's state is these chunks.
size_t tr__lce_chunks_workspace(const tr_op_desc *desc, const void *state);
void tr__lce_chunks_release(void *state); // NULL-safe

// The products of the chunk that takes the next of `left` gathered rows.
static inline const tr_lce_products *tr__lce_chunk_of(const tr_lce_chunks *chunks,
                                                      int64_t left) {
    int64_t few = chunks->few.dims.rows;
    return left > chunks->rows - few ? &chunks->full : &chunks->few;
}

// The rows of the chunks into which so many are gathered.
static inline int64_t tr__lce_computed(const tr_lce_chunks *chunks, int64_t count) {
    int64_t computed = 0;
    while (computed < count) {
        computed += tr__lce_chunk_of(chunks, count - computed)->dims.rows;
    }
    return computed;
}

// The products of the chunk that starts at row `first`.
static inline const tr_lce_products *tr__lce_chunk_at(const tr_lce_chunks *chunks,
                                                      int64_t first) {
    bool whole = chunks->dims.rows - first >= chunks->rows;
    return whole ? &chunks->full : &chunks->last;
}

#endif
