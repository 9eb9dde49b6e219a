#include "ops/nn/softmax_parts/cuda.h"

#include "backend/cuda/real.cuh"

// Columns of running, of best, and of a rank's place.
enum { RUNNING_LSE, RUNNING_PICKED };
enum { BEST_LOGIT, BEST_IS_TARGET };
enum { LSE, LSE_REST, PICKED, LOGIT, IS_TARGET, PART };

static __device__ void put(float *to, double value, bool add) {
    *to = (add ? *to : 0) + (float)value;
}

static __device__ void put_double(double *to, double value, bool add) {
    *to = (add ? *to : 0) + value;
}

// What f32 does not keep of a number; of one that is not finite nothing.
static __device__ double rest_of(double value) {
    float kept = (float)value;
    return fabsf(kept) < INFINITY ? value - kept : 0;
}

extern "C" __global__ void tr_cuda_softmax_part(tr_cuda_softmax_parts_args a) {
    TR_CUDA_LOOP(i, a.rows * a.ranks) {
        const double *running = a.running_in + i / a.ranks * 2;
        const float *best = a.best_in + i / a.ranks * 2;
        bool own = i % a.ranks == a.rank;
        float *to = a.parts + i * PART;
        put(&to[LSE], own ? running[RUNNING_LSE] : 0, a.add);
        put(&to[LSE_REST], own ? rest_of(running[RUNNING_LSE]) : 0, a.add);
        put(&to[PICKED], own ? running[RUNNING_PICKED] : 0, a.add);
        put(&to[LOGIT], own ? best[BEST_LOGIT] : 0, a.add);
        put(&to[IS_TARGET], own ? best[BEST_IS_TARGET] : 0, a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_softmax_part);

extern "C" __global__ void tr_cuda_softmax_part_backward(tr_cuda_softmax_parts_args a) {
    TR_CUDA_LOOP(row, a.rows) {
        const float *own = a.dparts_in + (row * a.ranks + a.rank) * PART;
        put_double(&a.drunning[2 * row + RUNNING_LSE], own[LSE], a.add);
        put_double(&a.drunning[2 * row + RUNNING_PICKED], own[PICKED], a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_softmax_part_backward);

static __device__ double lse_of(const float *part) {
    return (double)part[LSE] + part[LSE_REST];
}

static __device__ void join_running(const float *parts, int64_t ranks, double *to,
                                    bool add) {
    double most = -INFINITY, sum = 0, picked = 0;
    for (int64_t k = 0; k < ranks; k++) {
        most = fmax(most, lse_of(parts + k * PART));
        picked += parts[k * PART + PICKED];
    }
    double shift = most > -INFINITY ? most : 0; // else no power would be a number
    for (int64_t k = 0; k < ranks; k++) {
        sum += exp(lse_of(parts + k * PART) - shift); // NaN stays
    }
    put_double(&to[RUNNING_LSE], shift + log(sum), add);
    put_double(&to[RUNNING_PICKED], picked, add);
}

static __device__ void join_best(const float *parts, int64_t ranks, float *to,
                                 bool add) {
    const float *first = parts;
    for (int64_t k = 1; k < ranks; k++) {
        const float *part = parts + k * PART;
        first = part[LOGIT] > first[LOGIT] ? part : first;
    }
    put(&to[BEST_LOGIT], first[LOGIT], add);
    put(&to[BEST_IS_TARGET], first[IS_TARGET], add);
}

extern "C" __global__ void tr_cuda_softmax_join(tr_cuda_softmax_parts_args a) {
    TR_CUDA_LOOP(row, a.rows) {
        const float *parts = a.parts_in + row * a.ranks * PART;
        if (a.running) {
            join_running(parts, a.ranks, a.running + 2 * row, a.add);
        }
        if (a.best) {
            join_best(parts, a.ranks, a.best + 2 * row, a.add_best);
        }
    }
}
TR_CUDA_KERNEL(tr_cuda_softmax_join);

extern "C" __global__ void tr_cuda_softmax_join_backward(tr_cuda_softmax_parts_args a) {
    TR_CUDA_LOOP(i, a.rows * a.ranks) {
        int64_t row = i / a.ranks;
        const double *d = a.drunning_in + 2 * row;
        double lse = a.running_in[2 * row + RUNNING_LSE];
        double share = exp(lse_of(a.parts_in + i * PART) - lse);
        float *to = a.dparts + i * PART;
        put(&to[LSE], d[RUNNING_LSE] * share, a.add);
        put(&to[LSE_REST], 0, a.add);
        put(&to[PICKED], d[RUNNING_PICKED], a.add);
        put(&to[LOGIT], 0, a.add);
        put(&to[IS_TARGET], 0, a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_softmax_join_backward);
