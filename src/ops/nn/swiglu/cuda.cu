#include "ops/nn/swiglu/cuda.h"

#include "backend/cuda/math.cuh"
#include "backend/cuda/vector.cuh"

// The first gate of vector v of y: rows of h are longer. A division of 64 bits takes as
// long as all of a vector's other arithmetic.
template <int N>
static __device__ int64_t gates_of(const tr_cuda_swiglu_args &a, int64_t v) {
    int64_t width = a.width / N;
    bool is_small = a.rows * width <= UINT32_MAX;
    int64_t row = is_small ? (uint32_t)v / (uint32_t)width : v / width;
    return v * N + row * a.width;
}

template <class T, int N> static __device__ void forward(const tr_cuda_swiglu_args &a) {
    const T *h = (const T *)a.h;
    T *y = (T *)a.y;
    bool aligned = tr_cuda_is_aligned(h) && tr_cuda_is_aligned(y);
    TR_CUDA_LOOP(v, a.rows * a.width / N) {
        int64_t i = v * N, gates = gates_of<N>(a, v);
        tr_cuda_store<N>(y + i,
                         tr_cuda_apply<N>(
                             [](int64_t, float gate, float up) {
                                 return gate * tr_cuda_logistic<T>(gate) * up;
                             },
                             i, tr_cuda_load<N>(h + gates, aligned),
                             tr_cuda_load<N>(h + gates + a.width, aligned)),
                         a.add, aligned);
    }
}

// silu'(x) = s + x s (1 - s), where s is the logistic function of x.
template <class T, int N>
static __device__ void backward(const tr_cuda_swiglu_args &a) {
    const T *h = (const T *)a.h, *dy = (const T *)a.dy;
    T *dh = (T *)a.dh;
    bool aligned =
        tr_cuda_is_aligned(h) && tr_cuda_is_aligned(dy) && tr_cuda_is_aligned(dh);
    TR_CUDA_LOOP(v, a.rows * a.width / N) {
        int64_t i = v * N, gates = gates_of<N>(a, v), ups = gates + a.width;
        tr_cuda_vector<N> gate = tr_cuda_load<N>(h + gates, aligned);
        tr_cuda_vector<N> up = tr_cuda_load<N>(h + ups, aligned);
        tr_cuda_vector<N> d = tr_cuda_load<N>(dy + i, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            float s = tr_cuda_logistic<T>(gate.e[k]), silu = gate.e[k] * s;
            gate.e[k] = d.e[k] * up.e[k] * (s + silu * (1 - s));
            up.e[k] = d.e[k] * silu;
        }
        tr_cuda_store<N>(dh + gates, gate, a.add, aligned);
        tr_cuda_store<N>(dh + ups, up, a.add, aligned);
    }
}

template <class T> static __device__ void forward_rows(const tr_cuda_swiglu_args &a) {
    TR_CUDA_BY_WIDTH(T, a.width, forward, a);
}

template <class T> static __device__ void backward_rows(const tr_cuda_swiglu_args &a) {
    TR_CUDA_BY_WIDTH(T, a.width, backward, a);
}

extern "C" __global__ void tr_cuda_swiglu(tr_cuda_swiglu_args a) {
    TR_CUDA_BY_REAL(a.real, forward_rows, a);
}
TR_CUDA_KERNEL(tr_cuda_swiglu);

extern "C" __global__ void tr_cuda_swiglu_backward(tr_cuda_swiglu_args a) {
    TR_CUDA_BY_REAL(a.real, backward_rows, a);
}
TR_CUDA_KERNEL(tr_cuda_swiglu_backward);
