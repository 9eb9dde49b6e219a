#include "ops/flat/gradient_squares/cuda.h"

#include "backend/cuda/sums.cuh"
#include "backend/cuda/vector.cuh"
#include "ops/flat/accumulate/cuda_gradient.cuh"

static __device__ double square(float x) {
    return (double)x * x;
}

// Of elements [first, end) in f32, what the thread has of them: four side by side.
// first is a multiple of four.
static __device__ double squares_by_four(const float *x, int64_t first, int64_t end) {
    int64_t whole = first + (end - first) / 4 * 4, i = first + 4 * threadIdx.x;
    double sum = 0;
    for (; i < whole; i += 4 * TR_CUDA_THREADS) {
        uint4 words = tr_cuda_load16(x + i);
        sum += square(tr__f32_of_bits(words.x)) + square(tr__f32_of_bits(words.y)) +
               square(tr__f32_of_bits(words.z)) + square(tr__f32_of_bits(words.w));
    }
    i = whole + threadIdx.x;
    return i < end ? sum + square(x[i]) : sum;
}

// blockIdx.x: run of elements
extern "C" __global__ void tr_cuda_squares(tr_cuda_squares_args a) {
    int64_t first = blockIdx.x * a.block;
    int64_t end = first + a.block < a.count ? first + a.block : a.count;
    double sum = 0;
    if (a.x.type == TR_F32 && tr_cuda_is_aligned(a.x.first)) {
        sum = squares_by_four((const float *)a.x.first, first, end);
    } else {
        for (int64_t i = first + threadIdx.x; i < end; i += TR_CUDA_THREADS) {
            sum += square(tr_cuda_gradient(a.x, i));
        }
    }
    sum = tr_cuda_block_sum(sum);
    if (threadIdx.x == 0) {
        a.squares[blockIdx.x] = sum;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_squares);

// One block adds up all runs.
extern "C" __global__ void tr_cuda_squares_join(tr_cuda_squares_join_args a) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < a.runs; i += TR_CUDA_THREADS) {
        sum += a.squares[i];
    }
    sum = tr_cuda_block_sum(sum);
    if (threadIdx.x == 0) {
        *a.sum += sum;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_squares_join);
