#include "ops/nn/pool/cuda.h"

#include "backend/cuda/real.cuh"

// Element of a window that is its maximum, the first of equal ones; NaN is larger.
template <class T>
static __device__ int64_t largest(const tr_pool_sizes *s, const T *x, int64_t b,
                                  const tr_window &w, int64_t c) {
    int64_t best = -1;
    float top = 0;
    for (int64_t i = w.top; i < w.bottom; i++) {
        for (int64_t j = w.left; j < w.right; j++) {
            int64_t at = tr__pool_at(s, b, i, j) + c;
            float value = tr_cuda_get(x[at]);
            if (best < 0 || value > top || value != value) {
                best = at;
                top = value;
            }
        }
    }
    return best;
}

template <class T>
static __device__ float average(const tr_pool_sizes *s, const T *x, int64_t b,
                                const tr_window &w, int64_t c) {
    float sum = 0;
    for (int64_t i = w.top; i < w.bottom; i++) {
        for (int64_t j = w.left; j < w.right; j++) {
            sum += tr_cuda_get(x[tr__pool_at(s, b, i, j) + c]);
        }
    }
    return sum / (float)(s->kernel_h * s->kernel_w);
}

template <class T> static __device__ void forward(const tr_cuda_pool_args &a) {
    const T *x = (const T *)a.x;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(at, a.s.batch * a.s.rows * a.s.columns * a.s.channels) {
        int64_t c = at % a.s.channels, window = at / a.s.channels;
        int64_t b = window / a.s.columns / a.s.rows;
        tr_window w = tr__pool_window(&a.s, window / a.s.columns % a.s.rows,
                                      window % a.s.columns);
        float value = a.s.max ? tr_cuda_get(x[largest(&a.s, x, b, w, c)])
                              : average(&a.s, x, b, w, c);
        tr_cuda_give(&y[at], value, a.add);
    }
}

// The first window along a side that covers pixel i.
static __device__ int64_t first_window(const tr_pool_sizes *s, int64_t kernel,
                                       int64_t i) {
    int64_t before = i + s->padding - kernel + 1;
    return before <= 0 ? 0 : (before + s->stride - 1) / s->stride;
}

// The window behind the last one that covers pixel i.
static __device__ int64_t end_window(const tr_pool_sizes *s, int64_t windows,
                                     int64_t i) {
    int64_t end = (i + s->padding) / s->stride + 1;
    return end < windows ? end : windows;
}

// A thread has a pixel's channel, and looks at the windows that cover it, one after the
// other: windows may overlap.
template <class T> static __device__ void backward(const tr_cuda_pool_args &a) {
    const tr_pool_sizes *s = &a.s;
    const T *x = (const T *)a.x, *dy = (const T *)a.dy;
    T *dx = (T *)a.dx;
    float share = 1 / (float)(s->kernel_h * s->kernel_w);
    TR_CUDA_LOOP(at, s->batch * s->height * s->width * s->channels) {
        int64_t c = at % s->channels, pixel = at / s->channels;
        int64_t column = pixel % s->width, row = pixel / s->width % s->height;
        int64_t b = pixel / s->width / s->height;
        int64_t rows = end_window(s, s->rows, row);
        int64_t columns = end_window(s, s->columns, column);
        float sum = 0;
        for (int64_t i = first_window(s, s->kernel_h, row); i < rows; i++) {
            for (int64_t j = first_window(s, s->kernel_w, column); j < columns; j++) {
                int64_t window = (b * s->rows + i) * s->columns + j;
                float d = tr_cuda_get(dy[window * s->channels + c]);
                if (!s->max) {
                    sum += d * share;
                } else if (largest(s, x, b, tr__pool_window(s, i, j), c) == at) {
                    sum += d;
                }
            }
        }
        tr_cuda_give(&dx[at], sum, a.add);
    }
}

extern "C" __global__ void tr_cuda_pool(tr_cuda_pool_args a) {
    TR_CUDA_BY_REAL(a.real, forward, a);
}
TR_CUDA_KERNEL(tr_cuda_pool);

extern "C" __global__ void tr_cuda_pool_backward(tr_cuda_pool_args a) {
    TR_CUDA_BY_REAL(a.real, backward, a);
}
TR_CUDA_KERNEL(tr_cuda_pool_backward);
