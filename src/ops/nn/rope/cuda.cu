#include "ops/nn/rope/cuda.h"

#include "backend/cuda/vector.cuh"

// Turns the pairs of a row's heads, by the cosines and sines of a head's pairs.
template <class T, int N>
static __device__ void turn_heads(const tr_cuda_rope_args &a, const float *cosine,
                                  const float *sine) {
    int64_t half = a.depth / 2, across = half / N, first = blockIdx.x * a.width;
    const T *x = (const T *)a.x + first;
    T *y = (T *)a.y + first;
    bool aligned = tr_cuda_is_aligned(x) && tr_cuda_is_aligned(y);
    for (int64_t v = threadIdx.x; v < a.heads * across; v += TR_CUDA_ROPE_PAIRS) {
        int64_t j = v % across * N, at = v / across * a.depth + j;
        tr_cuda_vector<N> low = tr_cuda_load<N>(x + at, aligned);
        tr_cuda_vector<N> high = tr_cuda_load<N>(x + at + half, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            float c = cosine[j + k], s = sine[j + k], before = low.e[k];
            low.e[k] = before * c - high.e[k] * s;
            high.e[k] = high.e[k] * c + before * s;
        }
        tr_cuda_store<N>(y + at, low, a.add, aligned);
        tr_cuda_store<N>(y + at + half, high, a.add, aligned);
    }
}

// A block has a row: its threads first make a cosine and a sine each, which all heads
// share. Angles are counted in turns, of which the whole ones are taken off before: no
// large argument reaches the sine.
template <class T> static __device__ void turn(const tr_cuda_rope_args &a) {
    __shared__ float cosines[TR_CUDA_ROPE_PAIRS], sines[TR_CUDA_ROPE_PAIRS];
    int64_t row = blockIdx.x, j = threadIdx.x;
    if (j < a.depth / 2) {
        int64_t place = a.positions ? a.positions[row] : a.position + row % a.context;
        double turns = (double)place * a.frequency[j], sine, cosine;
        sincospi(2 * (turns - rint(turns)), &sine, &cosine);
        cosines[j] = a.size * (float)cosine;
        sines[j] = a.direction * a.size * (float)sine;
    }
    __syncthreads();
    if (a.width % TR_CUDA_VECTOR == 0 && a.depth / 2 % TR_CUDA_VECTOR == 0) {
        turn_heads<T, TR_CUDA_VECTOR>(a, cosines, sines);
    } else {
        turn_heads<T, 1>(a, cosines, sines);
    }
}

// What follows the heads of a row.
template <class T> static __device__ void pass(const tr_cuda_rope_args &a) {
    const T *x = (const T *)a.x;
    T *y = (T *)a.y;
    int64_t first = a.heads * a.depth, rest = a.width - first;
    TR_CUDA_LOOP(i, a.rows * rest) {
        int64_t at = i / rest * a.width + first + i % rest;
        tr_cuda_give(&y[at], tr_cuda_get(x[at]), a.add);
    }
}

extern "C" __global__ void tr_cuda_rope(tr_cuda_rope_args a) {
    TR_CUDA_BY_REAL(a.real, turn, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_rope);

extern "C" __global__ void tr_cuda_rope_pass(tr_cuda_rope_args a) {
    TR_CUDA_BY_REAL(a.real, pass, a);
}
TR_CUDA_KERNEL(tr_cuda_rope_pass);
