// What the launches of kernels (cuda.c of an op) call. Each call puts work into the
// queue of the launch. Where CUDA refuses it, the launch fails, and the queue's message
// names the kernel.
#ifndef TR_BACKEND_CUDA_LAUNCH_H
#define TR_BACKEND_CUDA_LAUNCH_H

#include "backend/cuda/grid.h"
#include "backend/cuda/modules.h"

#include <tranche/extend/op.h>

// `args`: the one parameter of the kernel, a structure of so many bytes. It is copied.
void tr__cuda_launch(const tr_launch *launch, const tr_cuda_function *function,
                     tr_cuda_grid grid, const void *args, size_t bytes);
// For kernels whose threads go through `count` elements (TR_CUDA_LOOP).
tr_cuda_grid tr__cuda_each(int64_t count);
// Likewise, TR_CUDA_VECTOR elements at a time (vector.cuh).
tr_cuda_grid tr__cuda_vectors(int64_t count);
// For kernels that sum the columns of a matrix: a block has TR_CUDA_LANES of them,
// along x, and TR_CUDA_COLUMN_THREADS threads for each, along y. The rows are cut into
// parts, along y of the grid.
tr_cuda_grid tr__cuda_columns(int64_t width, int64_t parts);
// Likewise, but a thread has TR_CUDA_VECTOR columns where `width` is a multiple of them
// (TR_CUDA_BY_WIDTH).
tr_cuda_grid tr__cuda_vector_columns(int64_t width, int64_t parts);
// Rows of each of these parts, the last one's excepted: a function of the rows alone,
// like the order of the sums.
int64_t tr__cuda_part_rows(int64_t rows);
// So many blocks of so many threads, along x.
tr_cuda_grid tr__cuda_blocks(int64_t blocks, int64_t threads);

struct tr_cuda_product;
// false: nothing has been put into the queue, because the product has a bias that
// cuBLASLt does not add (TR_CUDA_BARE).
bool tr__cuda_multiply(const tr_launch *launch, const struct tr_cuda_product *product);
struct tr_cuda_attend;
// Attention by the library, which is ready for its shape.
void tr__cuda_attend_by_library(const tr_launch *launch,
                                const struct tr_cuda_attend *attend);
void tr__cuda_clear(const tr_launch *launch, void *memory, int64_t bytes);

#endif
