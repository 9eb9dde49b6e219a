#include "ops/nn/softmax_parts/cuda.h"

#include "backend/cuda/real.cuh"
#include "ops/nn/softmax_parts/parts.h"

extern "C" __global__ void tr_cuda_softmax_part(tr_cuda_softmax_parts_args a) {
    TR_CUDA_LOOP(i, a.rows * a.ranks) {
        const double *running = a.running_in + i / a.ranks * 2;
        const float *best = a.best_in + i / a.ranks * 2;
        bool own = i % a.ranks == a.rank;
        float *to = a.parts + i * PART;
        tr__parts_put(&to[PART_LSE], own ? running[RUNNING_LSE] : 0, a.add);
        tr__parts_put(&to[PART_LSE_REST],
                      own ? tr__parts_rest(running[RUNNING_LSE]) : 0, a.add);
        tr__parts_put(&to[PART_PICKED], own ? running[RUNNING_PICKED] : 0, a.add);
        tr__parts_put(&to[PART_LOGIT], own ? best[BEST_LOGIT] : 0, a.add);
        tr__parts_put(&to[PART_IS_TARGET], own ? best[BEST_IS_TARGET] : 0, a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_softmax_part);

extern "C" __global__ void tr_cuda_softmax_part_backward(tr_cuda_softmax_parts_args a) {
    TR_CUDA_LOOP(row, a.rows) {
        const float *own = a.dparts_in + (row * a.ranks + a.rank) * PART;
        tr__parts_put_double(&a.drunning[2 * row + RUNNING_LSE], own[PART_LSE], a.add);
        tr__parts_put_double(&a.drunning[2 * row + RUNNING_PICKED], own[PART_PICKED],
                             a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_softmax_part_backward);

extern "C" __global__ void tr_cuda_softmax_join(tr_cuda_softmax_parts_args a) {
    TR_CUDA_LOOP(row, a.rows) {
        const float *parts = a.parts_in + row * a.ranks * PART;
        if (a.running) {
            tr__parts_join_running(parts, a.ranks, a.running + 2 * row, a.add);
        }
        if (a.best) {
            tr__parts_join_best(parts, a.ranks, a.best + 2 * row, a.add_best);
        }
    }
}
TR_CUDA_KERNEL(tr_cuda_softmax_join);

extern "C" __global__ void tr_cuda_softmax_join_backward(tr_cuda_softmax_parts_args a) {
    TR_CUDA_LOOP(i, a.rows * a.ranks) {
        int64_t row = i / a.ranks;
        const double *d = a.drunning_in + 2 * row;
        double lse = a.running_in[2 * row + RUNNING_LSE];
        double share = exp(tr__parts_lse(a.parts_in + i * PART) - lse);
        float *to = a.dparts + i * PART;
        tr__parts_put(&to[PART_LSE], d[RUNNING_LSE] * share, a.add);
        tr__parts_put(&to[PART_LSE_REST], 0, a.add);
        tr__parts_put(&to[PART_PICKED], d[RUNNING_PICKED], a.add);
        tr__parts_put(&to[PART_LOGIT], 0, a.add);
        tr__parts_put(&to[PART_IS_TARGET], 0, a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_softmax_join_backward);
