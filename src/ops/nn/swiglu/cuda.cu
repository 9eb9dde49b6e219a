#include "ops/nn/swiglu/cuda.h"

#include "backend/cuda/vector.cuh"

static __device__ float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

template <class T, int N> static __device__ void forward(const tr_cuda_swiglu_args &a) {
    const T *h = (const T *)a.h;
    T *y = (T *)a.y;
    bool aligned = tr_cuda_is_aligned(h) && tr_cuda_is_aligned(y);
    TR_CUDA_LOOP(v, a.rows * a.width / N) {
        int64_t i = v * N, gates = i + i / a.width * a.width; // rows of h are longer
        tr_cuda_store<N>(
            y + i,
            tr_cuda_apply<N>(
                [](int64_t, float gate, float up) { return gate * sigmoid(gate) * up; },
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
        int64_t i = v * N, gates = i + i / a.width * a.width, ups = gates + a.width;
        tr_cuda_vector<N> gate = tr_cuda_load<N>(h + gates, aligned);
        tr_cuda_vector<N> up = tr_cuda_load<N>(h + ups, aligned);
        tr_cuda_vector<N> d = tr_cuda_load<N>(dy + i, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            float s = sigmoid(gate.e[k]), silu = gate.e[k] * s;
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
