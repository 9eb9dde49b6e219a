#include "ops/flat/exact_sums/cuda.h"

#include "backend/cuda/device.cuh"
#include "base/exact_sum.h"

// Whole numbers are added: threads and blocks may come in any order.
extern "C" __global__ void tr_cuda_exact_sums(tr_cuda_exact_sums_args a) {
    __shared__ unsigned long long sum[TR_EXACT_WORDS];
    const tr_cuda_run run = a.runs[blockIdx.x];
    if (threadIdx.x < TR_EXACT_WORDS) {
        sum[threadIdx.x] = 0;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < run.count; i += TR_CUDA_THREADS) {
        tr_exact_term term = tr__exact_term(a.parts[run.first + i * a.columns]);
        for (int k = 0; k < 3; k++) {
            if (term.word[k] != 0) {
                atomicAdd(&sum[term.at + k], (unsigned long long)term.word[k]);
            }
        }
    }
    __syncthreads();
    if (threadIdx.x < TR_EXACT_WORDS && sum[threadIdx.x] != 0) {
        int64_t *to = a.sums + run.sum * TR_EXACT_WORDS + threadIdx.x;
        atomicAdd((unsigned long long *)to, sum[threadIdx.x]);
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_exact_sums);

extern "C" __global__ void tr_cuda_exact_values(tr_cuda_exact_values_args a) {
    __shared__ int64_t digit[TR_CUDA_LANES][TR_EXACT_ROOM];
    int64_t i = (int64_t)blockIdx.x * TR_CUDA_LANES + threadIdx.x;
    if (i < a.count) {
        a.values[i] = tr__exact_round(a.sums + i * TR_EXACT_WORDS, digit[threadIdx.x]);
    }
}
TR_CUDA_KERNEL(tr_cuda_exact_values);
