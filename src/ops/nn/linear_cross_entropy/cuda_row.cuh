// What a block finds out about a row of logits, and what it writes in their place. A
// row begins at a multiple of 16 bytes, and behind its last element there is room for a
// vector.
#ifndef TR_OPS_LINEAR_CROSS_ENTROPY_CUDA_ROW_H
#define TR_OPS_LINEAR_CROSS_ENTROPY_CUDA_ROW_H

#include "backend/cuda/sums.cuh"
#include "backend/cuda/vector.cuh"

// The largest logit, the first of equal ones, and the sum of all e^(logit - largest).
typedef struct tr_cuda_row_softmax {
    float top;
    int64_t place;
    double sum;
} tr_cuda_row_softmax;

// Eight logits from v on; -infinity behind the last, whatever lies there.
template <class L>
static __device__ inline tr_cuda_vector<TR_CUDA_VECTOR>
tr_cuda_row_get(const L *row, int64_t v, int64_t width) {
    tr_cuda_vector<TR_CUDA_VECTOR> x = tr_cuda_load<TR_CUDA_VECTOR>(row + v, true);
    TR_CUDA_UNROLL
    for (int k = 0; k < TR_CUDA_VECTOR; k++) {
        x.e[k] = v + k < width ? x.e[k] : -INFINITY;
    }
    return x;
}

// Adds logits to a sum whose top may grow: it is scaled then (Milakov and Gimelshein,
// arXiv 1805.02867, alg. 3), so that a row is read once. NaN is never a top, but every
// sum with one is NaN.
static __device__ inline void tr_cuda_row_add(tr_cuda_row_softmax *s,
                                              const tr_cuda_vector<TR_CUDA_VECTOR> &x,
                                              int64_t first) {
    float before = s->top, sum = 0;
    TR_CUDA_UNROLL
    for (int k = 0; k < TR_CUDA_VECTOR; k++) {
        bool higher = x.e[k] > s->top;
        s->place = higher ? first + k : s->place;
        s->top = higher ? x.e[k] : s->top;
    }
    float base = s->top == -INFINITY ? 0 : s->top; // all are -infinity so far
    if (s->top > before) {
        s->sum *= expf(before - base);
    }
    TR_CUDA_UNROLL
    for (int k = 0; k < TR_CUDA_VECTOR; k++) {
        sum += expf(x.e[k] - base);
    }
    s->sum += sum;
}

// The tops of a block's threads become one, in all of them; place `width`: of none.
static __device__ inline void tr_cuda_row_best(float *top, int64_t *place) {
    __shared__ float tops[TR_CUDA_THREADS];
    __shared__ int64_t places[TR_CUDA_THREADS];
    int t = threadIdx.x;
    tops[t] = *top;
    places[t] = *place;
    for (int half = TR_CUDA_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        int other = t + half;
        if (t < half && (tops[other] > tops[t] ||
                         (tops[other] == tops[t] && places[other] < places[t]))) {
            tops[t] = tops[other];
            places[t] = places[other];
        }
    }
    __syncthreads();
    *top = tops[0];
    *place = places[0];
    __syncthreads();
}

// Of row [width], in all threads of a block of TR_CUDA_THREADS. If no logit is above
// -infinity, place is `width`.
template <class L>
static __device__ inline tr_cuda_row_softmax tr_cuda_row_read(const L *row,
                                                              int64_t width) {
    enum { TURN = TR_CUDA_THREADS * TR_CUDA_VECTOR };
    tr_cuda_row_softmax s = {-INFINITY, width, 0};
    for (int64_t v = threadIdx.x * TR_CUDA_VECTOR; v < width; v += TURN) {
        tr_cuda_row_add(&s, tr_cuda_row_get(row, v, width), v);
    }
    float own = s.top;
    tr_cuda_row_best(&s.top, &s.place);
    float base = s.top == -INFINITY ? 0 : s.top;
    s.sum = tr_cuda_block_sum(own == s.top ? s.sum : s.sum * expf(own - base));
    return s;
}

// A vector of gradients from v on; 0 behind the last, whatever a gradient is there.
template <class L, class F>
static __device__ inline tr_cuda_vector<TR_CUDA_VECTOR>
tr_cuda_row_gradients(const L *row, int64_t v, int64_t width, const F &gradient) {
    tr_cuda_vector<TR_CUDA_VECTOR> x = tr_cuda_row_get(row, v, width);
    x = tr_cuda_apply<TR_CUDA_VECTOR>(gradient, v, x);
    TR_CUDA_UNROLL
    for (int k = 0; k < TR_CUDA_VECTOR; k++) {
        x.e[k] = v + k < width ? x.e[k] : 0;
    }
    return x;
}

// The block writes a row's gradients over its logits, an L each: from where the row
// begins, a T for each, which is no longer; then zeros up to element `end`, a multiple
// of a vector. gradient(v, logit): that of logit v. What a turn writes lies over logits
// of its own turn and of turns before it, which all threads have read.
template <class T, class L, class F>
static __device__ inline void tr_cuda_row_put(L *row, int64_t width, int64_t end,
                                              const F &gradient) {
    enum { TURN = TR_CUDA_THREADS * TR_CUDA_VECTOR };
    static_assert(sizeof(T) <= sizeof(L), "a gradient has room in its logit's place");
    for (int64_t start = 0; start < end; start += TURN) {
        int64_t v = start + threadIdx.x * TR_CUDA_VECTOR;
        tr_cuda_vector<TR_CUDA_VECTOR> x = {};
        if (v < end) {
            x = tr_cuda_row_gradients(row, v, width, gradient);
        }
        __syncthreads();
        if (v < end) {
            tr_cuda_store<TR_CUDA_VECTOR>((T *)row + v, x, false, true);
        }
    }
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
