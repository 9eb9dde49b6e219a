// The shape of a launch, for the C files that launch kernels and for the kernels.
#ifndef TR_BACKEND_CUDA_GRID_H
#define TR_BACKEND_CUDA_GRID_H

#include <stdint.h>

enum {
    TR_CUDA_LANES = 32,         // threads of a warp
    TR_CUDA_THREADS = 256,      // of a block, where nothing asks for another number
    TR_CUDA_COLUMN_THREADS = 8, // that sum a column of a matrix (tr__cuda_columns)
    TR_CUDA_BLOCKS_MOST = 4096, // of a grid whose threads go through elements
    TR_CUDA_VECTOR = 8,         // elements that a thread has at a time (vector.cuh)
};

// Blocks along x, y and z, and the threads of each. A grid without blocks is empty:
// nothing is launched.
typedef struct tr_cuda_grid {
    int64_t blocks[3], threads[3];
    int64_t shared; // bytes of shared memory that a block has beside its own variables
} tr_cuda_grid;

#endif
