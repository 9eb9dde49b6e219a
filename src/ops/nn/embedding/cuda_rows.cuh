// What the kernels of the embedding share.
#ifndef TR_OPS_NN_EMBEDDING_CUDA_ROWS_H
#define TR_OPS_NN_EMBEDDING_CUDA_ROWS_H

#include "ops/nn/embedding/cuda.h"

#include "backend/cuda/vector.cuh"

// The row of an id in the table, -1: it is none of them.
static __device__ inline int64_t row_of(const tr_cuda_embedding &e, int32_t id) {
    int64_t row = id - e.first;
    return row >= 0 && row < e.tokens ? row : -1;
}

// The row that the gradient of an id is added to, -1: none.
static __device__ inline int64_t trained_row(const tr_cuda_embedding &e, int32_t id) {
    return (int64_t)id + 1 == e.padding ? -1 : row_of(e, id);
}

// The row of the table of positions.
static __device__ inline int64_t place_of(const tr_cuda_embedding &e, int64_t row) {
    return e.places ? e.places[row] : e.position + row % e.length;
}

#endif
