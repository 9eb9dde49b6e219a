#include "ops/rope/cuda.h"

#include "backend/cuda/real.cuh"

// A thread turns one pair of a row in all its heads, by one cosine and sine. Angles are
// counted in turns, of which the whole ones are taken off before: no large argument
// reaches the sine.
template <class T> static __device__ void turn(const tr_cuda_rope_args &a) {
    const T *x = (const T *)a.x;
    T *y = (T *)a.y;
    int64_t half = a.depth / 2;
    TR_CUDA_LOOP(i, a.rows * half) {
        int64_t row = i / half, j = i % half;
        int64_t place = a.positions ? a.positions[row] : a.position + row % a.context;
        double turns = (double)place * a.frequency[j], sine, cosine;
        sincospi(2 * (turns - rint(turns)), &sine, &cosine);
        float c = a.size * (float)cosine, s = a.direction * a.size * (float)sine;
        for (int64_t head = 0; head < a.heads; head++) {
            int64_t at = row * a.width + head * a.depth + j;
            float low = tr_cuda_get(x[at]), high = tr_cuda_get(x[at + half]);
            tr_cuda_give(&y[at], low * c - high * s, a.add);
            tr_cuda_give(&y[at + half], high * c + low * s, a.add);
        }
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
TR_CUDA_KERNEL(tr_cuda_rope);

extern "C" __global__ void tr_cuda_rope_pass(tr_cuda_rope_args a) {
    TR_CUDA_BY_REAL(a.real, pass, a);
}
TR_CUDA_KERNEL(tr_cuda_rope_pass);
