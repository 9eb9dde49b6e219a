#include "ops/nn/magnitude/cuda.h"

#include "backend/cuda/real.cuh"
#include "backend/cuda/sums.cuh"

// A row of no length makes nothing.
static __device__ float over_length(float x, float squares) {
    return squares == 0 ? 0 : x / sqrtf(squares);
}

template <class T>
static __device__ float factor(const tr_cuda_magnitude_args &a, int64_t column) {
    for (int i = 0; i < a.layers; i++) {
        const tr_cuda_magnitude_layer &layer = a.layer[i];
        int64_t k = column - layer.first;
        if (k >= 0 && k < layer.count) {
            return over_length(tr_cuda_get(((const T *)layer.m)[k]), layer.squares[k]);
        }
    }
    return 1;
}

template <class T> static __device__ void scale(const tr_cuda_magnitude_args &a) {
    const T *x = (const T *)a.x;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.rows * a.width) {
        tr_cuda_give(&y[i], tr_cuda_get(x[i]) * factor<T>(a, i % a.width), a.add);
    }
}

// A column's sums, by TR_CUDA_COLUMN_THREADS threads.
template <class T>
static __device__ void sum_columns(const tr_cuda_magnitude_gradient_args &a) {
    const T *dy = (const T *)a.dy, *x = (const T *)a.x;
    int64_t c = blockIdx.x * (int64_t)TR_CUDA_LANES + threadIdx.x;
    float products = 0;
    for (int64_t r = threadIdx.y; c < a.width && r < a.rows;
         r += TR_CUDA_COLUMN_THREADS) {
        products += tr_cuda_get(dy[r * a.width + c]) * tr_cuda_get(x[r * a.width + c]);
    }
    products = tr_cuda_column_sum(products);
    if (threadIdx.y > 0 || c >= a.width) {
        return;
    }
    for (int i = 0; i < a.layers; i++) {
        const tr_cuda_magnitude_layer &layer = a.layer[i];
        int64_t k = c - layer.first;
        if (layer.dm && k >= 0 && k < layer.count) {
            tr_cuda_put(&layer.dm[k], over_length(products, layer.squares[k]),
                        layer.add);
        }
    }
}

extern "C" __global__ void tr_cuda_magnitude(tr_cuda_magnitude_args a) {
    TR_CUDA_BY_REAL(a.real, scale, a);
}
TR_CUDA_KERNEL(tr_cuda_magnitude);

extern "C" __global__ void
tr_cuda_magnitude_gradient(tr_cuda_magnitude_gradient_args a) {
    TR_CUDA_BY_REAL(a.real, sum_columns, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_magnitude_gradient);
