#include "ops/nn/linear_cross_entropy_slice/cuda.h"

#include "ops/nn/linear_cross_entropy/cuda_row.cuh"

// Columns of `running` and of `best`.
enum { LSE, PICKED };
enum { LOGIT, IS_TARGET };

// The slice's logit of a class, -1: it is another slice's, or none.
static __device__ int64_t place_of(int32_t target, int64_t first, int64_t width) {
    int64_t place = target - first;
    return target >= 0 && place >= 0 && place < width ? place : -1;
}

// log(e^a + e^b)
static __device__ double log_add(double a, double b) {
    double most = a > b ? a : b, least = a > b ? b : a;
    return most + log1p(exp(least - most));
}

static __device__ void put_running(const tr_cuda_slice_fold_args &a, int64_t row,
                                   double lse, float picked) {
    const double *before = a.running ? a.running + 2 * row : NULL;
    a.running_now[2 * row + LSE] = before ? log_add(before[LSE], lse) : lse;
    a.running_now[2 * row + PICKED] = (before ? before[PICKED] : 0) + picked;
}

static __device__ void put_best(const tr_cuda_slice_fold_args &a, int64_t row,
                                float top, bool guessed) {
    const float *before = a.best ? a.best + 2 * row : NULL;
    bool ahead = !before || top > before[LOGIT];
    a.best_now[2 * row + LOGIT] = ahead ? top : before[LOGIT];
    a.best_now[2 * row + IS_TARGET] = ahead ? (float)guessed : before[IS_TARGET];
}

// Zeros where a row that is kept has no logits.
template <class L>
static __device__ void clear_rest(const tr_cuda_slice_fold_args &a, L *logits,
                                  bool there) {
    int64_t first = there ? a.width : 0;
    for (int64_t i = first + threadIdx.x; i < a.pitch; i += blockDim.x) {
        tr_cuda_set(&logits[i], 0);
    }
}

template <class L> static __device__ void fold(const tr_cuda_slice_fold_args &a) {
    int64_t row = blockIdx.x, place = place_of(a.targets[row], a.first, a.width);
    L *logits = (L *)a.logits + row * a.pitch;
    bool there = a.targets[row] >= 0;
    tr_cuda_row_softmax s = tr_cuda_row_read(logits, a.width, (L *)NULL);
    if (a.keeps) {
        clear_rest(a, logits, there);
    }
    if (threadIdx.x > 0) {
        return;
    }
    double lse = (s.top > -INFINITY ? s.top : 0) + log(s.sum); // NaN stays
    if (a.running_now && there) {
        put_running(a, row, lse, place >= 0 ? tr_cuda_get(logits[place]) : 0);
    } else if (a.running_now) {
        a.running_now[2 * row + LSE] = a.running_now[2 * row + PICKED] = 0;
    }
    if (a.best_now && there) {
        put_best(a, row, s.top, place >= 0 && place == s.place);
    } else if (a.best_now) {
        a.best_now[2 * row + LOGIT] = a.best_now[2 * row + IS_TARGET] = 0;
    }
}

extern "C" __global__ void tr_cuda_slice_fold(tr_cuda_slice_fold_args a) {
    if (a.logits_real == TR_F32) {
        fold<float>(a);
    } else {
        fold<tr_cuda_bf16>(a);
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_slice_fold);

// A row's gradients: of each logit factor e^(logit - top), of the target's `picked`
// more.
typedef struct softening {
    float top, factor, picked;
    int64_t place;
} softening;

template <class T, class L>
static __device__ void put_gradients(const tr_cuda_slice_soften_args &a, int64_t row,
                                     const softening &s) {
    L *logits = (L *)a.logits + row * a.pitch;
    tr_cuda_row_put<T>(
        logits, a.width, a.padded, {s.place, s.picked}, [&](float logit) {
            return s.factor != 0 ? s.factor * tr_cuda_exp<L>(logit - s.top) : 0;
        });
}

// The sum is taken off in two steps, its f32 part from each logit and the rest at once:
// that of a large sum would be lost in f32.
extern "C" __global__ void tr_cuda_slice_soften(tr_cuda_slice_soften_args a) {
    int64_t row = blockIdx.x;
    bool there = a.targets[row] >= 0;
    double lse = a.after[2 * row + LSE];
    softening s = {(float)lse, 0, (float)a.dafter[2 * row + PICKED],
                   place_of(a.targets[row], a.first, a.width)};
    s.factor = there ? (float)(a.dafter[2 * row + LSE] * exp(s.top - lse)) : 0;
    TR_CUDA_BY_LOGITS(a.real, a.logits_real, put_gradients, a, row, s);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_slice_soften);

extern "C" __global__ void tr_cuda_slice_before(tr_cuda_slice_soften_args a) {
    TR_CUDA_LOOP(row, a.rows) {
        bool there = a.targets[row] >= 0;
        const double *dafter = a.dafter + 2 * row;
        double *to = a.dbefore + 2 * row;
        double share = exp(a.before[2 * row + LSE] - a.after[2 * row + LSE]);
        double lse = there ? dafter[LSE] * share : 0;
        double picked = there ? dafter[PICKED] : 0;
        to[LSE] = a.add ? to[LSE] + lse : lse;
        to[PICKED] = a.add ? to[PICKED] + picked : picked;
    }
}
TR_CUDA_KERNEL(tr_cuda_slice_before);

// One block has all rows.
extern "C" __global__ void tr_cuda_slice_loss(tr_cuda_slice_loss_args a) {
    double loss = 0, count = 0, correct = 0;
    for (int64_t row = threadIdx.x; row < a.rows; row += TR_CUDA_THREADS) {
        if (a.targets[row] >= 0) {
            loss += a.running[2 * row + LSE] - a.running[2 * row + PICKED];
            count += 1;
            correct += a.best[2 * row + IS_TARGET] > 0;
        }
    }
    loss = tr_cuda_block_sum(loss);
    count = tr_cuda_block_sum(count);
    correct = tr_cuda_block_sum(correct);
    if (threadIdx.x == 0) {
        a.sums[0] += loss;
        a.sums[1] += count;
        a.sums[2] += correct;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_slice_loss);

extern "C" __global__ void tr_cuda_slice_loss_backward(tr_cuda_slice_loss_args a) {
    TR_CUDA_LOOP(row, a.rows) {
        double seed = a.targets[row] >= 0 ? a.seed : 0, *to = a.drunning + 2 * row;
        to[LSE] = (a.add ? to[LSE] : 0) + seed;
        to[PICKED] = (a.add ? to[PICKED] : 0) - seed;
    }
}
TR_CUDA_KERNEL(tr_cuda_slice_loss_backward);
