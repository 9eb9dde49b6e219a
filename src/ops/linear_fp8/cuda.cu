#include "ops/linear_fp8/cuda.h"

#include "backend/cuda/real.cuh"
#include "base/fp8.h"

enum { TILE = TR_CUDA_LANES, DEEP = TR_CUDA_COLUMN_THREADS };

static __device__ uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

// Integers, so the order of threads changes nothing.
template <class T> static __device__ void largest(const tr_cuda_fp8_largest_args &a) {
    const T *x = (const T *)a.x;
    uint32_t most = 0;
    TR_CUDA_LOOP(i, a.count) {
        most = larger(most, tr__f32_bits(tr_cuda_get(x[i])) & 0x7FFFFFFF);
    }
    for (int k = TR_CUDA_LANES / 2; k > 0; k /= 2) {
        most = larger(most, __shfl_xor_sync(TR_CUDA_WARP, most, k));
    }
    if (threadIdx.x % TR_CUDA_LANES == 0) {
        atomicMax(a.largest, most);
    }
}

extern "C" __global__ void tr_cuda_fp8_largest(tr_cuda_fp8_largest_args a) {
    TR_CUDA_BY_REAL(a.real, largest, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_fp8_largest);

// A tile of x passes through shared memory, so that both sides are read and written
// along their rows. blockIdx.x: columns of x; blockIdx.y: rows
template <class T> static __device__ void round_tile(const tr_cuda_fp8_round_args &a) {
    __shared__ uint8_t tile[TILE][TILE + 1];
    const T *x = (const T *)a.x;
    tr_fp8_scale scale = tr__fp8_scale_of((tr_fp8)a.format, *a.largest);
    int64_t row = blockIdx.y * (int64_t)TILE, column = blockIdx.x * (int64_t)TILE;
    int along = threadIdx.x;
    for (int i = threadIdx.y; i < TILE; i += DEEP) {
        bool there = row + i < a.rows && column + along < a.width;
        float value = there ? tr_cuda_get(x[(row + i) * a.width + column + along]) : 0;
        tile[i][along] = there ? tr__fp8_of_f32((tr_fp8)a.format, value * scale.by) : 0;
    }
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += DEEP) {
        int64_t line = (a.transposed ? column : row) + i;
        int64_t at = (a.transposed ? row : column) + along;
        if (line < (a.transposed ? a.width : a.rows) && at < a.to_row) {
            a.to[line * a.to_row + at] = a.transposed ? tile[along][i] : tile[i][along];
        }
    }
    if (row + column + along + threadIdx.y == 0) {
        *a.back = scale.back;
    }
}

extern "C" __global__ void tr_cuda_fp8_round(tr_cuda_fp8_round_args a) {
    TR_CUDA_BY_REAL(a.real, round_tile, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_fp8_round);
