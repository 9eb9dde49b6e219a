#include "ops/nn/columns/cuda.h"

#include "backend/cuda/real.cuh"

template <class T> static __device__ void add(const tr_cuda_columns_args &a) {
    const T *x = (const T *)a.x, *u = (const T *)a.u;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.rows * a.width) {
        int64_t column = i % a.width - a.first;
        float value = tr_cuda_get(x[i]);
        if (column >= 0 && column < a.count) {
            value += a.scale * tr_cuda_get(u[i / a.width * a.count + column]);
        }
        tr_cuda_give(&y[i], value, a.add);
    }
}

template <class T> static __device__ void take(const tr_cuda_columns_args &a) {
    const T *x = (const T *)a.x;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.rows * a.count) {
        int64_t from = i / a.count * a.width + a.first + i % a.count;
        tr_cuda_give(&y[i], a.scale * tr_cuda_get(x[from]), a.add);
    }
}

template <class T> static __device__ void put(const tr_cuda_columns_args &a) {
    const T *u = (const T *)a.u;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.rows * a.width) {
        int64_t column = i % a.width - a.first;
        if (column >= 0 && column < a.count) {
            float value = a.scale * tr_cuda_get(u[i / a.width * a.count + column]);
            tr_cuda_give(&y[i], value, a.add);
        } else if (a.clear) {
            tr_cuda_set(&y[i], 0);
        }
    }
}

extern "C" __global__ void tr_cuda_add_columns(tr_cuda_columns_args a) {
    TR_CUDA_BY_REAL(a.real, add, a);
}
TR_CUDA_KERNEL(tr_cuda_add_columns);

extern "C" __global__ void tr_cuda_take_columns(tr_cuda_columns_args a) {
    TR_CUDA_BY_REAL(a.real, take, a);
}
TR_CUDA_KERNEL(tr_cuda_take_columns);

extern "C" __global__ void tr_cuda_put_columns(tr_cuda_columns_args a) {
    TR_CUDA_BY_REAL(a.real, put, a);
}
TR_CUDA_KERNEL(tr_cuda_put_columns);
