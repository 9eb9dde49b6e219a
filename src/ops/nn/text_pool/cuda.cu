#include "ops/nn/text_pool/cuda.h"

#include "backend/cuda/real.cuh"
#include "ops/nn/text_pool/texts.h"

static __device__ inline const int32_t *places_of(const tr_cuda_text_pool_args &a,
                                                  int64_t sample) {
    return a.places ? a.places + sample * a.length : nullptr;
}

// blockIdx.x: text of a sample
template <class T> static __device__ void pool(const tr_cuda_text_pool_args &a) {
    int64_t sample = blockIdx.x / a.attr.texts, text = blockIdx.x % a.attr.texts;
    const int32_t *places = places_of(a, sample);
    const T *x = (const T *)a.from + sample * a.length * a.width;
    T *y = (T *)a.to + (int64_t)blockIdx.x * a.width;
    int64_t begin = 0;
    for (int64_t k = 0; k < text; k++) {
        begin = tr__text_next(places, begin, a.length);
    }
    tr_pooled_text t = tr__text_at(&a.attr, places, begin, a.length);
    for (int64_t c = threadIdx.x; c < a.width; c += TR_CUDA_THREADS) {
        double sum = 0;
        for (int64_t s = t.begin; s < t.end; s++) {
            sum += tr_cuda_get(x[s * a.width + c]);
        }
        double before = a.add ? tr_cuda_get(y[c]) : 0;
        tr_cuda_set(&y[c], (float)(before + sum * t.weight));
    }
}

extern "C" __global__ void tr_cuda_text_pool(tr_cuda_text_pool_args a) {
    TR_CUDA_BY_REAL(a.real, pool, a);
}
TR_CUDA_KERNEL(tr_cuda_text_pool);

// Of which text token `at` is; where that begins is *begin.
static __device__ inline int64_t text_of(const int32_t *places, int64_t at,
                                         int64_t *begin) {
    int64_t text = 0;
    *begin = 0;
    for (int64_t s = 1; s <= at && places; s++) {
        bool begins = places[s] <= 0;
        text += begins;
        *begin = begins ? s : *begin;
    }
    return text;
}

// blockIdx.x: token of a sample
template <class T> static __device__ void spread(const tr_cuda_text_pool_args &a) {
    int64_t sample = blockIdx.x / a.length, at = blockIdx.x % a.length, begin;
    const int32_t *places = places_of(a, sample);
    int64_t text = text_of(places, at, &begin);
    tr_pooled_text t = tr__text_at(&a.attr, places, begin, a.length);
    bool counts = text < a.attr.texts && at >= t.begin && at < t.end;
    const T *dy = (const T *)a.from + (sample * a.attr.texts + text) * a.width;
    T *dx = (T *)a.to + (int64_t)blockIdx.x * a.width;
    for (int64_t c = threadIdx.x; c < a.width; c += TR_CUDA_THREADS) {
        float value = counts ? (float)t.weight * tr_cuda_get(dy[c]) : 0;
        tr_cuda_give(&dx[c], value, a.add);
    }
}

extern "C" __global__ void tr_cuda_text_spread(tr_cuda_text_pool_args a) {
    TR_CUDA_BY_REAL(a.real, spread, a);
}
TR_CUDA_KERNEL(tr_cuda_text_spread);
