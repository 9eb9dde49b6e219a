// What a block of TR_CUDA_LOGITS_THREADS finds out about a row of logits, and what it
// writes in their place. A row begins at a multiple of 16 bytes, and behind its last
// element there is room for a vector. Logits of 16 bits have exponentials of single
// instructions (tr_cuda_exp).
#ifndef TR_OPS_LINEAR_CROSS_ENTROPY_CUDA_ROW_H
#define TR_OPS_LINEAR_CROSS_ENTROPY_CUDA_ROW_H

#include "backend/cuda/math.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/sums.cuh"
#include "backend/cuda/vector.cuh"
#include "ops/nn/linear_cross_entropy/cuda.h"

// The largest logit, the first of equal ones, and the sum of all e^(logit - largest).
typedef struct tr_cuda_row_softmax {
    float top;
    int64_t place;
    double sum;
} tr_cuda_row_softmax;

// f(v, vector) for a thread's vectors of a row up to element `end`, where v is the
// first element. Some of them are on their way together.
template <class L, class F>
static __device__ inline void tr_cuda_row_each(const L *row, int64_t end, const F &f) {
    enum { TURN = TR_CUDA_LOGITS_THREADS * TR_CUDA_VECTOR, SOME = 8 / sizeof(L) };
    for (int64_t v = threadIdx.x * TR_CUDA_VECTOR; v < end; v += SOME * TURN) {
        tr_cuda_packed<L> x[SOME];
        TR_CUDA_UNROLL
        for (int i = 0; i < SOME; i++) {
            if (v + i * TURN < end) {
                x[i] = tr_cuda_load_eight(row + v + i * TURN);
            }
        }
        TR_CUDA_UNROLL
        for (int i = 0; i < SOME; i++) {
            if (v + i * TURN < end) {
                f(v + i * TURN, x[i]);
            }
        }
    }
}

// The vector at v; `none` behind the row's last element, whatever lies there.
static __device__ inline void tr_cuda_row_end(tr_cuda_vector<TR_CUDA_VECTOR> *x,
                                              int64_t v, int64_t width, float none) {
    if (v + TR_CUDA_VECTOR > width) {
        TR_CUDA_UNROLL
        for (int k = 0; k < TR_CUDA_VECTOR; k++) {
            x->e[k] = v + k < width ? x->e[k] : none;
        }
    }
}

// The top grows to `most`, which is among x: the sum is scaled (Milakov and Gimelshein,
// arXiv 1805.02867, alg. 3), so that a row is read once.
template <class L>
static __device__ inline void tr_cuda_row_grow(tr_cuda_row_softmax *s, float most,
                                               const tr_cuda_vector<TR_CUDA_VECTOR> &x,
                                               int64_t first) {
    TR_CUDA_UNROLL
    for (int k = TR_CUDA_VECTOR - 1; k >= 0; k--) {
        s->place = x.e[k] == most ? first + k : s->place;
    }
    s->sum *= tr_cuda_exp<L>(s->top - most);
    s->top = most;
}

// Adds logits. NaN is never a top, but every sum with one is NaN.
template <class L>
static __device__ inline void tr_cuda_row_add(tr_cuda_row_softmax *s,
                                              const tr_cuda_vector<TR_CUDA_VECTOR> &x,
                                              int64_t first) {
    float most = x.e[0], sum = 0;
    TR_CUDA_UNROLL
    for (int k = 1; k < TR_CUDA_VECTOR; k++) {
        most = fmaxf(most, x.e[k]);
    }
    if (most > s->top) {
        tr_cuda_row_grow<L>(s, most, x, first);
    }
    float base = s->top == -INFINITY ? 0 : s->top; // all are -infinity so far
    TR_CUDA_UNROLL
    for (int k = 0; k < TR_CUDA_VECTOR; k++) {
        sum += tr_cuda_exp<L>(x.e[k] - base);
    }
    s->sum += sum;
}

// Is b before a? The first of equal ones is.
static __device__ inline void tr_cuda_row_better(float *top, int64_t *place,
                                                 float other, int64_t at) {
    bool better = other > *top || (other == *top && at < *place);
    *top = better ? other : *top;
    *place = better ? at : *place;
}

// The tops of a block's threads become one, in all of them; place `width`: of none.
template <int THREADS>
static __device__ inline void tr_cuda_row_best(float *top, int64_t *place) {
    enum { WARPS = THREADS / TR_CUDA_LANES };
    __shared__ float tops[WARPS];
    __shared__ int64_t places[WARPS];
    for (int k = TR_CUDA_LANES / 2; k > 0; k /= 2) {
        float other = __shfl_xor_sync(TR_CUDA_WARP, *top, k);
        tr_cuda_row_better(top, place, other, __shfl_xor_sync(TR_CUDA_WARP, *place, k));
    }
    if (threadIdx.x % TR_CUDA_LANES == 0) {
        tops[threadIdx.x / TR_CUDA_LANES] = *top;
        places[threadIdx.x / TR_CUDA_LANES] = *place;
    }
    __syncthreads();
    for (int warp = 0; warp < WARPS; warp++) {
        tr_cuda_row_better(top, place, tops[warp], places[warp]);
    }
    __syncthreads();
}

// Of row [width], in all threads. If no logit is above -infinity, place is `width`.
// kept: where the block keeps the row, in shared memory; NULL: nowhere.
template <class L>
static __device__ inline tr_cuda_row_softmax tr_cuda_row_read(const L *row,
                                                              int64_t width, L *kept) {
    tr_cuda_row_softmax s = {-INFINITY, width, 0};
    tr_cuda_row_each(row, width, [&](int64_t v, const tr_cuda_packed<L> &packed) {
        tr_cuda_vector<TR_CUDA_VECTOR> x = tr_cuda_unpacked(packed);
        if (kept) {
            tr_cuda_store_eight(kept + v, packed);
        }
        tr_cuda_row_end(&x, v, width, -INFINITY);
        tr_cuda_row_add<L>(&s, x, v);
    });
    float own = s.top;
    tr_cuda_row_best<TR_CUDA_LOGITS_THREADS>(&s.top, &s.place);
    float base = s.top == -INFINITY ? 0 : s.top;
    s.sum = own == s.top ? s.sum : s.sum * tr_cuda_exp<L>(own - base);
    s.sum = tr_cuda_block_sum<double, TR_CUDA_LOGITS_THREADS>(s.sum);
    return s;
}

// A row's element that has `more` than others; place -1: none.
typedef struct tr_cuda_row_picked {
    int64_t place;
    float more;
} tr_cuda_row_picked;

// Gradients of the vector at v; 0 behind the row's last element, whatever a gradient is
// there.
template <class F>
static __device__ inline tr_cuda_vector<TR_CUDA_VECTOR>
tr_cuda_row_gradients(tr_cuda_vector<TR_CUDA_VECTOR> x, int64_t v, int64_t width,
                      const tr_cuda_row_picked &picked, const F &gradient) {
    TR_CUDA_UNROLL
    for (int k = 0; k < TR_CUDA_VECTOR; k++) {
        x.e[k] = gradient(x.e[k]);
    }
    if (picked.place >= v && picked.place < v + TR_CUDA_VECTOR) {
        TR_CUDA_UNROLL
        for (int k = 0; k < TR_CUDA_VECTOR; k++) {
            x.e[k] += v + k == picked.place ? picked.more : 0;
        }
    }
    tr_cuda_row_end(&x, v, width, 0);
    return x;
}

// The block writes a row's gradients over its logits, an L each: from where the row
// begins, a T for each, which is no longer; then zeros up to element `end`, a multiple
// of a vector. gradient(logit): that of all, beside what the picked one has more. A T
// that is shorter lies over other threads' logits: of the same turn and of turns before
// it, which all threads have read.
template <class T, class L, class F>
static __device__ inline void tr_cuda_row_put(L *row, int64_t width, int64_t end,
                                              const tr_cuda_row_picked &picked,
                                              const F &gradient) {
    enum { N = TR_CUDA_VECTOR, TURN = TR_CUDA_LOGITS_THREADS * N };
    static_assert(sizeof(T) <= sizeof(L), "a gradient has room in its logit's place");
    for (int64_t start = 0; start < end; start += TURN) {
        int64_t v = start + threadIdx.x * N;
        tr_cuda_vector<N> x = {};
        if (v < end) {
            x = tr_cuda_row_gradients(tr_cuda_load<N>(row + v, true), v, width, picked,
                                      gradient);
        }
        if constexpr (sizeof(T) < sizeof(L)) {
            __syncthreads();
        }
        if (v < end) {
            tr_cuda_store<N>((T *)row + v, x, false, true);
        }
    }
}

// Likewise, of the logits as the block has kept them: each thread's are its own.
template <class T, class L, class F>
static __device__ inline void
tr_cuda_row_put_kept(const L *kept, T *row, int64_t width, int64_t end,
                     const tr_cuda_row_picked &picked, const F &gradient) {
    tr_cuda_row_each(kept, end, [&](int64_t v, const tr_cuda_packed<L> &packed) {
        tr_cuda_store<TR_CUDA_VECTOR>(
            row + v,
            tr_cuda_row_gradients(tr_cuda_unpacked(packed), v, width, picked, gradient),
            false, true);
    });
}

// Calls function<T, L>(...): gradients of the tr_dtype `real`, over logits that are
// `logits`: f32, or what the gradients are.
#define TR_CUDA_BY_LOGITS(real, logits, function, ...)                                 \
    do {                                                                               \
        if ((logits) != TR_F32) {                                                      \
            function<tr_cuda_bf16, tr_cuda_bf16>(__VA_ARGS__);                         \
        } else if ((real) == TR_F32) {                                                 \
            function<float, float>(__VA_ARGS__);                                       \
        } else if ((real) == TR_BF16) {                                                \
            function<tr_cuda_bf16, float>(__VA_ARGS__);                                \
        } else {                                                                       \
            function<tr_cuda_f16, float>(__VA_ARGS__);                                 \
        }                                                                              \
    } while (0)

#endif
