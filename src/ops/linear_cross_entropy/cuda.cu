#include "ops/linear_cross_entropy/cuda.h"

#include "backend/cuda/device.cuh"

enum { THREADS = TR_CUDA_THREADS };

// The best of what all threads have, the first of equals; left in place 0.
static __device__ void find_best(float *value, int64_t *at) {
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        int t = threadIdx.x, other = t + half;
        if (t < half && (value[other] > value[t] ||
                         (value[other] == value[t] && at[other] < at[t]))) {
            value[t] = value[other];
            at[t] = at[other];
        }
    }
    __syncthreads();
}

static __device__ void add_up(double *value) {
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            value[threadIdx.x] += value[threadIdx.x + half];
        }
    }
    __syncthreads();
}

// blockIdx.x: row
extern "C" __global__ void tr_cuda_cross_entropy(tr_cuda_cross_entropy_args a) {
    __shared__ float values[THREADS];
    __shared__ int64_t places[THREADS];
    __shared__ double sums[THREADS];
    float *row = a.logits + blockIdx.x * a.width;
    int32_t target = a.targets[blockIdx.x];
    int t = threadIdx.x;
    values[t] = -INFINITY;
    places[t] = a.width;
    sums[t] = 0;
    for (int64_t v = t; v < a.width; v += THREADS) {
        if (row[v] > values[t] || places[t] == a.width) {
            values[t] = row[v];
            places[t] = v;
        }
    }
    find_best(values, places);
    float top = values[0], wanted = target >= 0 ? row[target] : 0;
    for (int64_t v = t; v < a.width; v += THREADS) {
        sums[t] += expf(row[v] - top);
    }
    add_up(sums); // ends where all threads have read the row
    float scale = target >= 0 ? a.seed / (float)sums[0] : 0;
    for (int64_t v = t; a.gradients && v < a.width; v += THREADS) {
        float g = target >= 0 ? expf(row[v] - top) * scale : 0;
        row[v] = v == target ? g - a.seed : g;
    }
    if (t == 0) {
        tr_cuda_row_sums own = {0, 0, 0};
        if (target >= 0) {
            own.loss = (double)top + log(sums[0]) - wanted;
            own.count = 1;
            own.correct = places[0] == target;
        }
        a.each[blockIdx.x] = own;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_cross_entropy);

extern "C" __global__ void tr_cuda_add_row_sums(tr_cuda_add_row_sums_args a) {
    tr_cuda_row_sums sum = {0, 0, 0};
    for (int64_t row = 0; row < a.rows; row++) {
        sum.loss += a.each[row].loss;
        sum.count += a.each[row].count;
        sum.correct += a.each[row].correct;
    }
    a.sums[0] += sum.loss;
    a.sums[1] += sum.count;
    a.sums[2] += sum.correct;
}
TR_CUDA_KERNEL(tr_cuda_add_row_sums);

extern "C" __global__ void tr_cuda_last_targets(tr_cuda_last_targets_args a) {
    TR_CUDA_LOOP(b, a.samples) {
        int64_t row = a.length - 1;
        while (row >= 0 && a.targets[b * a.length + row] < 0) {
            row--;
        }
        a.rows[b] = row;
    }
}
TR_CUDA_KERNEL(tr_cuda_last_targets);

extern "C" __global__ void tr_cuda_take_rows(tr_cuda_take_rows_args a) {
    TR_CUDA_LOOP(i, a.samples * a.width) {
        int64_t b = i / a.width, c = i % a.width, row = a.rows[b];
        a.to[i] = row >= 0 ? a.x[(b * a.length + row) * a.width + c] : 0;
    }
}
TR_CUDA_KERNEL(tr_cuda_take_rows);

extern "C" __global__ void tr_cuda_clear_rows(tr_cuda_clear_rows_args a) {
    TR_CUDA_LOOP(i, a.samples * a.width) {
        a.y[i] = a.rows[i / a.width] < 0 ? 0 : a.y[i];
    }
}
TR_CUDA_KERNEL(tr_cuda_clear_rows);
