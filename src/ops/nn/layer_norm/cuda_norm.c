#include "ops/nn/layer_norm/cuda_norm.h"

#include "base/checked.h"

extern tr_cuda_function tr__cuda_function_norm_sums;

// A function of the rows alone, as the order of the sums is. So many blocks are what a
// GPU of some 130 multiprocessors works on at once.
static int64_t part_rows(int64_t rows) {
    enum { PARTS_MOST = 256, LEAST = 32 };
    return tr__max_i64(tr__ceil_div(rows, PARTS_MOST), LEAST);
}

static int64_t parts_of(int64_t rows) {
    return tr__ceil_div(rows, part_rows(rows));
}

bool tr__cuda_norm_has_both(int64_t width) {
    return width % TR_CUDA_VECTOR == 0 && width <= TR_CUDA_BOTH_WIDE;
}

size_t tr__cuda_norm_both_bytes(int64_t rows, int64_t width) {
    return (size_t)(2 * parts_of(rows) * width) * sizeof(float);
}

static void add_parts(const tr_launch *launch, const tr_cuda_norm_backward *norm,
                      const float *parts) {
    int64_t count = parts_of(norm->rows);
    tr_cuda_norm_parts sums = {.parts = count,
                               .width = norm->width,
                               .from = {parts, parts + count * norm->width},
                               .sums = {norm->dweight, norm->dbias},
                               .add = {norm->add_dweight, norm->add_dbias}};
    tr_cuda_grid grid = tr__cuda_columns(norm->width, 2);
    tr__cuda_launch(launch, &tr__cuda_function_norm_sums, grid, &sums, sizeof sums);
}

void tr__cuda_norm_both(const tr_launch *launch, const tr_cuda_function *narrow,
                        const tr_cuda_function *wide, const tr_cuda_norm_backward *norm,
                        float *parts) {
    int64_t count = parts_of(norm->rows);
    tr_cuda_norm_backward each = *norm;
    each.part = part_rows(norm->rows);
    each.inverse = 1 / (float)norm->width;
    each.dweight = norm->dweight ? parts : NULL;
    each.dbias = norm->dbias ? parts + count * norm->width : NULL;
    tr__cuda_launch(launch, norm->width <= TR_CUDA_BOTH_NARROW ? narrow : wide,
                    tr__cuda_blocks(count, TR_CUDA_THREADS), &each, sizeof each);
    add_parts(launch, norm, parts);
}
