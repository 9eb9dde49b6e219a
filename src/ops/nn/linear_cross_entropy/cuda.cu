#include "ops/nn/linear_cross_entropy/cuda.h"

#include "ops/nn/linear_cross_entropy/cuda_row.cuh"

// The logits' gradients; scale: the seed over the sum of all e^(logit - top).
template <class T, class L>
static __device__ void put_gradients(const tr_cuda_cross_entropy_args &a, L *row,
                                     const L *kept, int32_t target, float top,
                                     float scale) {
    tr_cuda_row_picked picked = {target, -a.seed};
    auto gradient = [&](float logit) {
        return target >= 0 ? tr_cuda_exp<L>(logit - top) * scale : 0;
    };
    if (kept) {
        tr_cuda_row_put_kept(kept, (T *)row, a.width, a.padded, picked, gradient);
    } else {
        tr_cuda_row_put<T>(row, a.width, a.padded, picked, gradient);
    }
}

// blockIdx.x: row
template <class T, class L>
static __device__ void cross_entropy(const tr_cuda_cross_entropy_args &a) {
    L *row = (L *)a.logits + blockIdx.x * a.pitch;
    L *kept = a.kept ? (L *)tr_cuda_shared() : NULL;
    int32_t target = a.targets[blockIdx.x];
    float wanted = target >= 0 ? tr_cuda_get(row[target]) : 0;
    // all threads have read the row then
    tr_cuda_row_softmax s = tr_cuda_row_read(row, a.width, kept);
    if (a.gradients) {
        float scale = target >= 0 ? a.seed / (float)s.sum : 0;
        put_gradients<T>(a, row, kept, target, s.top, scale);
    }
    if (threadIdx.x == 0) {
        tr_cuda_row_sums own = {0, 0, 0};
        if (target >= 0) {
            own.loss = (double)s.top + log(s.sum) - wanted;
            own.count = 1;
            own.correct = s.place == target;
        }
        a.each[blockIdx.x] = own;
    }
}

extern "C" __global__ void __launch_bounds__(TR_CUDA_LOGITS_THREADS, 2)
    tr_cuda_cross_entropy(tr_cuda_cross_entropy_args a) {
    TR_CUDA_BY_LOGITS(a.real, a.logits_real, cross_entropy, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_cross_entropy);

extern "C" __global__ void tr_cuda_add_row_sums(tr_cuda_add_row_sums_args a) {
    tr_cuda_row_sums sum = {0, 0, 0};
    for (int64_t row = threadIdx.x; row < a.rows; row += TR_CUDA_THREADS) {
        sum.loss += a.each[row].loss;
        sum.count += a.each[row].count;
        sum.correct += a.each[row].correct;
    }
    sum.loss = tr_cuda_block_sum(sum.loss);
    sum.count = tr_cuda_block_sum(sum.count);
    sum.correct = tr_cuda_block_sum(sum.correct);
    if (threadIdx.x == 0) {
        a.sums[0] += sum.loss;
        a.sums[1] += sum.count;
        a.sums[2] += sum.correct;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_add_row_sums);

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

template <class T> static __device__ void take_rows(const tr_cuda_take_rows_args &a) {
    const T *x = (const T *)a.x;
    T *to = (T *)a.to;
    TR_CUDA_LOOP(i, a.samples * a.width) {
        int64_t b = i / a.width, c = i % a.width, row = a.rows[b];
        int64_t from = (b * a.length + row) * a.width + c;
        tr_cuda_set(&to[i], row >= 0 ? tr_cuda_get(x[from]) : 0);
    }
}

extern "C" __global__ void tr_cuda_take_rows(tr_cuda_take_rows_args a) {
    TR_CUDA_BY_REAL(a.real, take_rows, a);
}
TR_CUDA_KERNEL(tr_cuda_take_rows);

extern "C" __global__ void tr_cuda_clear_rows(tr_cuda_clear_rows_args a) {
    TR_CUDA_LOOP(i, a.samples * a.width) {
        a.y[i] = a.rows[i / a.width] < 0 ? 0 : a.y[i];
    }
}
TR_CUDA_KERNEL(tr_cuda_clear_rows);
