#include "ops/flat/update/cuda.h"

#include "backend/cuda/device.cuh"

// All threads fetch parts; the first two add them, one after the other: whichever ranks
// have measured them, a sum has the same bits.
extern "C" __global__ void tr_cuda_tensor_squares(tr_cuda_tensor_squares_args a) {
    __shared__ double squares[TR_CUDA_THREADS];
    int64_t t = threadIdx.x, tensor = a.runs[blockIdx.x].tensor;
    int64_t values = 2 * a.runs[blockIdx.x].count;
    const double *from = a.parts + 2 * a.runs[blockIdx.x].first;
    double sum = t < 2 ? a.tensors[2 * tensor + t] : 0;
    for (int64_t at = 0; at < values; at += TR_CUDA_THREADS) {
        int64_t left = values - at;
        if (t < left) {
            squares[t] = from[at + t];
        }
        __syncthreads();
        for (int64_t i = t; t < 2 && i < TR_CUDA_THREADS && i < left; i += 2) {
            sum += squares[i];
        }
        __syncthreads();
    }
    if (t < 2) {
        a.tensors[2 * tensor + t] = sum;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_tensor_squares);
