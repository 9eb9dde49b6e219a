#include "ops/nn/normalize/cuda.h"

#include "backend/cuda/sums.cuh"

static __device__ double dot(const float *a, const float *b, int64_t width) {
    double sum = 0;
    for (int64_t c = threadIdx.x; c < width; c += TR_CUDA_THREADS) {
        sum += (double)a[c] * b[c];
    }
    return tr_cuda_block_sum(sum);
}

extern "C" __global__ void tr_cuda_normalize(tr_cuda_normalize_args a) {
    const double least = 1e-12; // length that a row is divided by
    int64_t first = blockIdx.x * a.width;
    const float *x = a.x + first, *dy = a.dy ? a.dy + first : x;
    float *to = a.to + first;
    double length = sqrt(dot(x, x, a.width)), along = 0;
    length = length < least ? least : length; // NaN stays so
    if (a.dy) {
        double both = dot(x, dy, a.width);
        along = length > least ? both / length / length : 0;
    }
    for (int64_t c = threadIdx.x; c < a.width; c += TR_CUDA_THREADS) {
        double value = a.dy ? (dy[c] - x[c] * along) / length : x[c] / length;
        to[c] = (float)(a.add ? to[c] + value : value);
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_normalize);
