#include "backend/cuda/launch.h"

#include "backend/cuda/backend.h"
#include "backend/cuda/driver.h"
#include "base/checked.h"

static void note(const tr_launch *launch, const char *what, int error) {
    tr__cuda_queue_note(launch->queue, what, error);
    if (error != 0 && launch->failed && *launch->failed == TR_OK) {
        *launch->failed = TR_INTERNAL;
    }
}

void tr__cuda_launch(const tr_launch *launch, const tr_cuda_function *function,
                     tr_cuda_grid grid, const void *args, size_t bytes) {
    if (grid.blocks[0] * grid.blocks[1] * grid.blocks[2] > 0) {
        int error = tr__cuda_driver()->launch(function->loaded, &grid, args, bytes,
                                              tr__cuda_stream(launch->queue));
        note(launch, function->name, error);
    }
}

tr_cuda_grid tr__cuda_blocks(int64_t blocks, int64_t threads) {
    return (tr_cuda_grid){.blocks = {blocks, 1, 1}, .threads = {threads, 1, 1}};
}

tr_cuda_grid tr__cuda_each(int64_t count) {
    int64_t blocks = tr__ceil_div(count, TR_CUDA_THREADS);
    return tr__cuda_blocks(tr__min_i64(blocks, TR_CUDA_BLOCKS_MOST), TR_CUDA_THREADS);
}

// From so many blocks on, a thread has two vectors, which it loads together. Blocks are
// short then: a GPU has several hundred at a time, and the last of them leave the less
// of it idle, the more there are.
tr_cuda_grid tr__cuda_vectors(int64_t count) {
    enum { SINGLE = 4096, MOST = 16384 };
    int64_t blocks = tr__ceil_div(count, TR_CUDA_VECTOR * TR_CUDA_THREADS);
    blocks = blocks < SINGLE ? blocks : tr__ceil_div(blocks, 2);
    return tr__cuda_blocks(tr__min_i64(blocks, MOST), TR_CUDA_THREADS);
}

int64_t tr__cuda_part_rows(int64_t rows) {
    enum { PARTS_MOST = 128, LEAST = 128 };
    return tr__max_i64(tr__ceil_div(rows, PARTS_MOST), LEAST);
}

tr_cuda_grid tr__cuda_vector_columns(int64_t width, int64_t parts) {
    bool whole = width % TR_CUDA_VECTOR == 0;
    return tr__cuda_columns(whole ? width / TR_CUDA_VECTOR : width, parts);
}

tr_cuda_grid tr__cuda_columns(int64_t width, int64_t parts) {
    return (tr_cuda_grid){.blocks = {tr__ceil_div(width, TR_CUDA_LANES), parts, 1},
                          .threads = {TR_CUDA_LANES, TR_CUDA_COLUMN_THREADS, 1}};
}

bool tr__cuda_multiply(const tr_launch *launch, const tr_cuda_product *product) {
    tr_cuda_product whole = *product;
    void *stream = tr__cuda_stream(launch->queue);
    whole.scratch = tr__cuda_scratch(launch->queue, &whole.scratch_bytes);
    int error = tr__cuda_driver()->multiply(&whole, stream);
    if (error == TR_CUDA_BARE) {
        return false;
    }
    note(launch, "a product", error);
    return true;
}

void tr__cuda_attend_by_library(const tr_launch *launch, const tr_cuda_attend *attend) {
    int error =
        tr__cuda_driver()->attention.attend(attend, tr__cuda_stream(launch->queue));
    note(launch, "attention by cuDNN", error);
}

void tr__cuda_clear(const tr_launch *launch, void *memory, int64_t bytes) {
    void *stream = tr__cuda_stream(launch->queue);
    note(launch, "the clearing of memory",
         tr__cuda_driver()->clear(memory, (size_t)bytes, stream));
}
