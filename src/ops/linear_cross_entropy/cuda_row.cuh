// What a block finds out about a row of logits.
#ifndef TR_OPS_LINEAR_CROSS_ENTROPY_CUDA_ROW_H
#define TR_OPS_LINEAR_CROSS_ENTROPY_CUDA_ROW_H

#include "backend/cuda/real.cuh"
#include "backend/cuda/sums.cuh"

typedef struct tr_cuda_row_best {
    float value;
    int64_t place;
} tr_cuda_row_best;

// The largest of row [width], the first of equal ones, in all threads of a block of
// TR_CUDA_THREADS.
static __device__ inline tr_cuda_row_best tr_cuda_find_best(const float *row,
                                                            int64_t width) {
    __shared__ float values[TR_CUDA_THREADS];
    __shared__ int64_t places[TR_CUDA_THREADS];
    int t = threadIdx.x;
    tr_cuda_row_best best = {-INFINITY, width};
    for (int64_t v = t; v < width; v += TR_CUDA_THREADS) {
        if (row[v] > best.value || best.place == width) {
            best.value = row[v];
            best.place = v;
        }
    }
    values[t] = best.value;
    places[t] = best.place;
    for (int half = TR_CUDA_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        int other = t + half;
        if (t < half && (values[other] > values[t] ||
                         (values[other] == values[t] && places[other] < places[t]))) {
            values[t] = values[other];
            places[t] = places[other];
        }
    }
    __syncthreads();
    best.value = values[0];
    best.place = places[0];
    __syncthreads();
    return best;
}

// The sum of e^(logit - top) over row [width], likewise in all threads.
static __device__ inline double tr_cuda_sum_exp(const float *row, int64_t width,
                                                float top) {
    double sum = 0;
    for (int64_t v = threadIdx.x; v < width; v += TR_CUDA_THREADS) {
        sum += expf(row[v] - top);
    }
    return tr_cuda_block_sum(sum);
}

// The block writes a row's gradients over its logits, which are f32: from where the row
// begins, a T for each. What a turn writes has been read before it. EXPR: the gradient
// of logit v.
#define TR_CUDA_ROW_PUT(T, row, width, EXPR)                                           \
    for (int64_t start = 0; start < (width); start += TR_CUDA_THREADS) {               \
        int64_t v = start + threadIdx.x;                                               \
        float gradient = v < (width) ? (EXPR) : 0;                                     \
        __syncthreads();                                                               \
        if (v < (width)) {                                                             \
            tr_cuda_set(&((T *)(row))[v], gradient);                                   \
        }                                                                              \
    }

#endif
