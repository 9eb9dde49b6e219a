#include "ops/nn/layer_norm/cuda_norm.h"

#include "base/checked.h"

extern tr_cuda_function tr__cuda_function_norm_sums;

void tr__cuda_norm_rows(const tr_launch *launch, const tr_cuda_function *narrow,
                        const tr_cuda_function *wide, const tr_cuda_norm *norm) {
    int64_t bytes = (int64_t)tr_dtype_bytes((tr_dtype)norm->real);
    int64_t of_warp = TR_CUDA_LANES * (TR_CUDA_ROW_BYTES / bytes);
    int64_t warps = tr__ceil_div(norm->width, of_warp);
    bool whole = norm->width % TR_CUDA_VECTOR == 0 && warps <= TR_CUDA_ROW_WARPS;
    bool is_wide = whole && warps > 1;
    tr_cuda_norm each = *norm;
    each.vector = whole ? TR_CUDA_VECTOR : 1;
    each.inverse = 1 / (float)norm->width;
    tr_cuda_grid grid = tr__cuda_blocks(tr__ceil_div(norm->rows, TR_CUDA_NORM_ROWS),
                                        TR_CUDA_NORM_ROWS * TR_CUDA_LANES);
    if (is_wide) {
        grid = tr__cuda_blocks(norm->rows, warps * TR_CUDA_LANES);
    }
    tr__cuda_launch(launch, is_wide ? wide : narrow, grid, &each, sizeof each);
}

// A function of the shape alone, as the order of the sums is. So many blocks are what a
// GPU of some 130 multiprocessors works on at once.
static int64_t part_rows(int64_t rows, int64_t width) {
    enum { PARTS_MOST = 256, LEAST = 8 };
    int64_t least = width <= TR_CUDA_BOTH_WARP ? LEAST * 4 : LEAST;
    return tr__max_i64(tr__ceil_div(rows, PARTS_MOST), least);
}

static int64_t parts_of(int64_t rows, int64_t width) {
    return tr__ceil_div(rows, part_rows(rows, width));
}

bool tr__cuda_norm_has_both(int64_t width) {
    return width % TR_CUDA_VECTOR == 0 && width <= TR_CUDA_BOTH_WIDEST;
}

size_t tr__cuda_norm_both_bytes(int64_t rows, int64_t width) {
    return (size_t)(2 * parts_of(rows, width) * width) * sizeof(float);
}

// Vectors of a row that a thread has (tr_cuda_both).
static int64_t vectors_of(int64_t width) {
    enum { WARP = TR_CUDA_LANES * TR_CUDA_VECTOR };
    int64_t all = TR_CUDA_THREADS * TR_CUDA_VECTOR;
    return width <= TR_CUDA_BOTH_WARP ? tr__ceil_div(width, WARP)
           : width <= all             ? 1
           : width <= 2 * all         ? 2
                                      : 4;
}

// Sets the rows that each thread has in shared memory, and returns their bytes in a
// block: room for two blocks at a time where a GPU has 200 KiB, and for one where it
// has 100.
static int64_t set_stages(tr_cuda_norm_backward *norm) {
    enum { ROOM = 96 << 10 };
    int64_t bytes = (int64_t)tr_dtype_bytes((tr_dtype)norm->real) * TR_CUDA_VECTOR;
    int64_t operands = norm->add_dx ? 3 : 2;
    int64_t stage = operands * vectors_of(norm->width) * bytes * TR_CUDA_THREADS;
    int64_t most = ROOM / stage;
    norm->stages = most >= TR_CUDA_BOTH_STAGES ? TR_CUDA_BOTH_STAGES
                   : most >= 2                 ? 2
                                               : 1;
    return norm->stages * stage;
}

static void add_parts(const tr_launch *launch, const tr_cuda_norm_backward *norm,
                      const float *parts) {
    int64_t count = parts_of(norm->rows, norm->width);
    tr_cuda_norm_parts sums = {.parts = count,
                               .width = norm->width,
                               .from = {parts, parts + count * norm->width},
                               .sums = {norm->dweight, norm->dbias},
                               .add = {norm->add_dweight, norm->add_dbias}};
    tr_cuda_grid grid = tr__cuda_columns(norm->width, 2);
    tr__cuda_launch(launch, &tr__cuda_function_norm_sums, grid, &sums, sizeof sums);
}

void tr__cuda_norm_both(const tr_launch *launch, const tr_cuda_function *both,
                        const tr_cuda_norm_backward *norm, float *parts) {
    int64_t count = parts_of(norm->rows, norm->width);
    tr_cuda_norm_backward each = *norm;
    each.part = part_rows(norm->rows, norm->width);
    each.inverse = 1 / (float)norm->width;
    each.dweight = norm->dweight ? parts : NULL;
    each.dbias = norm->dbias ? parts + count * norm->width : NULL;
    tr_cuda_grid grid = tr__cuda_blocks(count, TR_CUDA_THREADS);
    grid.shared = set_stages(&each);
    tr__cuda_launch(launch, both, grid, &each, sizeof each);
    add_parts(launch, norm, parts);
}
