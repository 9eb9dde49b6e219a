#include "ops/linear_cross_entropy/cuda.h"

#include "backend/cuda/device.cuh"

enum { THREADS = 256 };

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

// A block has a row. blockIdx.x: row
static __global__ void cross_entropy(float *logits, const int32_t *targets,
                                     int64_t width, bool gradients, float seed,
                                     tr_cuda_row_sums *each) {
    __shared__ float values[THREADS];
    __shared__ int64_t places[THREADS];
    __shared__ double sums[THREADS];
    float *row = logits + blockIdx.x * width;
    int32_t target = targets[blockIdx.x];
    int t = threadIdx.x;
    values[t] = -INFINITY;
    places[t] = width;
    sums[t] = 0;
    for (int64_t v = t; v < width; v += THREADS) {
        if (row[v] > values[t] || places[t] == width) {
            values[t] = row[v];
            places[t] = v;
        }
    }
    find_best(values, places);
    float top = values[0], wanted = target >= 0 ? row[target] : 0;
    for (int64_t v = t; v < width; v += THREADS) {
        sums[t] += expf(row[v] - top);
    }
    add_up(sums); // ends where all threads have read the row
    float scale = target >= 0 ? seed / (float)sums[0] : 0;
    for (int64_t v = t; gradients && v < width; v += THREADS) {
        float g = target >= 0 ? expf(row[v] - top) * scale : 0;
        row[v] = v == target ? g - seed : g;
    }
    if (t == 0) {
        tr_cuda_row_sums none = {0, 0, 0};
        each[blockIdx.x] = none;
        if (target >= 0) {
            each[blockIdx.x].loss = (double)top + log(sums[0]) - wanted;
            each[blockIdx.x].count = 1;
            each[blockIdx.x].correct = places[0] == target;
        }
    }
}

static __global__ void add_row_sums(const tr_cuda_row_sums *each, int64_t rows,
                                    double *sums) {
    tr_cuda_row_sums sum = {0, 0, 0};
    for (int64_t row = 0; row < rows; row++) {
        sum.loss += each[row].loss;
        sum.count += each[row].count;
        sum.correct += each[row].correct;
    }
    sums[0] += sum.loss;
    sums[1] += sum.count;
    sums[2] += sum.correct;
}

static __global__ void last_targets(const int32_t *targets, int64_t samples,
                                    int64_t length, int64_t *rows) {
    TR_CUDA_LOOP(b, samples) {
        int64_t row = length - 1;
        while (row >= 0 && targets[b * length + row] < 0) {
            row--;
        }
        rows[b] = row;
    }
}

static __global__ void take_rows(const float *x, const int64_t *rows, int64_t samples,
                                 int64_t length, int64_t width, float *to) {
    TR_CUDA_LOOP(i, samples * width) {
        int64_t b = i / width, c = i % width;
        to[i] = rows[b] >= 0 ? x[(b * length + rows[b]) * width + c] : 0;
    }
}

static __global__ void clear_rows(const int64_t *rows, int64_t samples, int64_t width,
                                  float *y) {
    TR_CUDA_LOOP(i, samples * width) {
        y[i] = rows[i / width] < 0 ? 0 : y[i];
    }
}

void tr_cuda_cross_entropy(float *logits, const int32_t *targets, int64_t rows,
                           int64_t width, bool gradients, float seed,
                           tr_cuda_row_sums *each, void *stream) {
    TR_CUDA_BLOCKS(cross_entropy, dim3((unsigned)rows), dim3(THREADS), stream, logits,
                   targets, width, gradients, seed, each);
}

void tr_cuda_add_row_sums(const tr_cuda_row_sums *each, int64_t rows, double *sums,
                          void *stream) {
    TR_CUDA_GRID(add_row_sums, dim3(1), dim3(1), stream, each, rows, sums);
}

void tr_cuda_last_targets(const int32_t *targets, int64_t samples, int64_t length,
                          int64_t *rows, void *stream) {
    TR_CUDA_EACH(last_targets, samples, stream, targets, samples, length, rows);
}

void tr_cuda_take_rows(const float *x, const int64_t *rows, int64_t samples,
                       int64_t length, int64_t width, float *to, void *stream) {
    TR_CUDA_EACH(take_rows, samples * width, stream, x, rows, samples, length, width,
                 to);
}

void tr_cuda_clear_rows(const int64_t *rows, int64_t samples, int64_t width, float *y,
                        void *stream) {
    TR_CUDA_EACH(clear_rows, samples * width, stream, rows, samples, width, y);
}
