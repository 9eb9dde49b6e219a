#include "ops/linear/cuda.h"

#include "backend/cuda/real.cuh"
#include "backend/cuda/sums.cuh"

enum { LANES = TR_CUDA_LANES, DEEP = TR_CUDA_COLUMN_THREADS };

template <class T, class B>
static __device__ void add_bias(const tr_cuda_bias_args &a) {
    const B *bias = (const B *)a.bias;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.count) {
        int64_t row = i / a.width, column = i % a.width;
        T *at = y + row * a.pitch + column;
        float value = tr_cuda_get(*at);
        value += bias ? tr_cuda_get(bias[column]) : 0;
        tr_cuda_set(at, a.relu && value < 0 ? 0 : value);
    }
}

template <class B> static __device__ void bias_of(const tr_cuda_bias_args &a) {
    if (a.y_real == TR_F32) {
        add_bias<float, B>(a);
    } else {
        add_bias<B, B>(a);
    }
}

extern "C" __global__ void tr_cuda_bias(tr_cuda_bias_args a) {
    TR_CUDA_BY_REAL(a.real, bias_of, a);
}
TR_CUDA_KERNEL(tr_cuda_bias);

// Of the grid tr__cuda_columns. blockIdx: columns, part of the rows
template <class T>
static __device__ void column_sums(const tr_cuda_column_sums_args &a) {
    const T *x = (const T *)a.x;
    int64_t c = blockIdx.x * (int64_t)LANES + threadIdx.x;
    int64_t first = blockIdx.y * a.part;
    int64_t end = first + a.part < a.rows ? first + a.part : a.rows;
    float sum = 0;
    for (int64_t row = first + threadIdx.y; c < a.width && row < end; row += DEEP) {
        sum += tr_cuda_get(x[row * a.pitch + c]);
    }
    sum = tr_cuda_column_sum(sum);
    if (threadIdx.y == 0 && c < a.width) {
        tr_cuda_put(&a.sums[blockIdx.y * a.width + c], sum, a.add);
    }
}

extern "C" __global__ void tr_cuda_column_sums(tr_cuda_column_sums_args a) {
    TR_CUDA_BY_REAL(a.real, column_sums, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_column_sums);
