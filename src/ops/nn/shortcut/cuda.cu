#include "ops/nn/shortcut/cuda.h"

#include "backend/cuda/real.cuh"

template <class T> static __device__ void forward(const tr_cuda_shortcut_args &a) {
    const T *x = (const T *)a.from;
    T *y = (T *)a.to;
    TR_CUDA_LOOP(i, a.batch * a.rows * a.columns * a.channels) {
        int64_t c = i % a.channels, pixel = i / a.channels;
        int64_t column = pixel % a.columns, row = pixel / a.columns % a.rows;
        int64_t sample = pixel / a.columns / a.rows;
        int64_t from = (sample * a.height + row * a.stride) * a.width;
        from = (from + column * a.stride) * a.given + c;
        tr_cuda_give(&y[i], c < a.given ? tr_cuda_get(x[from]) : 0, a.add);
    }
}

template <class T> static __device__ void backward(const tr_cuda_shortcut_args &a) {
    const T *dy = (const T *)a.from;
    T *dx = (T *)a.to;
    TR_CUDA_LOOP(i, a.batch * a.height * a.width * a.given) {
        int64_t c = i % a.given, pixel = i / a.given;
        int64_t column = pixel % a.width, row = pixel / a.width % a.height;
        int64_t sample = pixel / a.width / a.height;
        bool taken = row % a.stride == 0 && column % a.stride == 0;
        int64_t from = (sample * a.rows + row / a.stride) * a.columns;
        from = (from + column / a.stride) * a.channels + c;
        tr_cuda_give(&dx[i], taken ? tr_cuda_get(dy[from]) : 0, a.add);
    }
}

extern "C" __global__ void tr_cuda_shortcut(tr_cuda_shortcut_args a) {
    TR_CUDA_BY_REAL(a.real, forward, a);
}
TR_CUDA_KERNEL(tr_cuda_shortcut);

extern "C" __global__ void tr_cuda_shortcut_backward(tr_cuda_shortcut_args a) {
    TR_CUDA_BY_REAL(a.real, backward, a);
}
TR_CUDA_KERNEL(tr_cuda_shortcut_backward);
