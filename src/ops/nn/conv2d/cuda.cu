#include "ops/nn/conv2d/cuda.h"

#include "backend/cuda/real.cuh"

// An element of the matrix.
template <class T> static __device__ void see(const tr_cuda_windows_args &a) {
    const T *image = (const T *)a.image;
    T *windows = (T *)a.windows;
    int64_t wide = a.in * a.p * a.q;
    TR_CUDA_LOOP(at, a.batch * a.rows * a.columns * wide) {
        int64_t k = at % wide, window = at / wide;
        int64_t q = k % a.q, p = k / a.q % a.p, c = k / a.q / a.p;
        int64_t j = window % a.columns * a.stride[1] + q * a.dilation[1] - a.padding[1];
        int64_t i = window / a.columns % a.rows * a.stride[0] + p * a.dilation[0] -
                    a.padding[0];
        int64_t b = window / a.columns / a.rows;
        bool inside = i >= 0 && i < a.height && j >= 0 && j < a.width;
        int64_t from = ((b * a.height + i) * a.width + j) * a.in + c;
        tr_cuda_set(&windows[at], inside ? tr_cuda_get(image[from]) : 0);
    }
}

extern "C" __global__ void tr_cuda_windows(tr_cuda_windows_args a) {
    TR_CUDA_BY_REAL(a.real, see, a);
}
TR_CUDA_KERNEL(tr_cuda_windows);

// The window along a side that sees pixel `i` through place `p` of it; -1: none.
static __device__ int64_t window_at(const tr_cuda_windows_args &a, int side, int64_t i,
                                    int64_t p, int64_t windows) {
    int64_t from = i + a.padding[side] - p * a.dilation[side], stride = a.stride[side];
    bool whole = from >= 0 && from % stride == 0 && from / stride < windows;
    return whole ? from / stride : -1;
}

// An element of the image: the sum of what all windows have for it, one after the
// other.
template <class T> static __device__ void sum_windows(const tr_cuda_windows_args &a) {
    const T *windows = (const T *)a.windows;
    T *image = (T *)a.image;
    int64_t wide = a.in * a.p * a.q;
    TR_CUDA_LOOP(at, a.batch * a.height * a.width * a.in) {
        int64_t c = at % a.in, j = at / a.in % a.width;
        int64_t i = at / a.in / a.width % a.height, b = at / a.in / a.width / a.height;
        float sum = 0;
        for (int64_t p = 0; p < a.p; p++) {
            int64_t row = window_at(a, 0, i, p, a.rows);
            for (int64_t q = 0; row >= 0 && q < a.q; q++) {
                int64_t column = window_at(a, 1, j, q, a.columns);
                int64_t window = (b * a.rows + row) * a.columns + column;
                int64_t k = (c * a.p + p) * a.q + q;
                sum += column >= 0 ? tr_cuda_get(windows[window * wide + k]) : 0;
            }
        }
        tr_cuda_give(&image[at], sum, a.add);
    }
}

extern "C" __global__ void tr_cuda_windows_sum(tr_cuda_windows_args a) {
    TR_CUDA_BY_REAL(a.real, sum_windows, a);
}
TR_CUDA_KERNEL(tr_cuda_windows_sum);
