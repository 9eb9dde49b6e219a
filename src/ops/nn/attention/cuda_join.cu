// Attention's sums over several parts of the keys become one: in the order of the
// parts, so every run gives the same bits.
#include "ops/nn/attention/cuda.h"

#include "backend/cuda/real.cuh"

template <class T> static __device__ void join(const tr_cuda_attend_join_args &a) {
    int64_t row = blockIdx.x, head = row / a.queries, query = row % a.queries;
    int64_t part = head * a.parts * a.queries + query; // the first one's row
    float highest = -INFINITY, total = 0;
    for (int p = 0; p < a.parts; p++) {
        highest = fmaxf(highest, a.tops[2 * (part + p * a.queries)]);
    }
    for (int p = 0; p < a.parts; p++) {
        const float *top = a.tops + 2 * (part + p * a.queries);
        total += top[1] * exp2f(top[0] - highest);
    }
    for (int64_t d = threadIdx.x; d < a.depth; d += blockDim.x) {
        float sum = 0;
        for (int p = 0; p < a.parts; p++) {
            int64_t at = part + p * a.queries;
            sum += a.sums[at * a.depth + d] * exp2f(a.tops[2 * at] - highest);
        }
        tr_cuda_give((T *)a.y + row * a.depth + d, sum / total, a.add);
    }
}

// blockIdx.x: a row of y
extern "C" __global__ void tr_cuda_attend_join(tr_cuda_attend_join_args args) {
    TR_CUDA_BY_REAL(args.real, join, args);
}
TR_CUDA_KERNEL(tr_cuda_attend_join);
