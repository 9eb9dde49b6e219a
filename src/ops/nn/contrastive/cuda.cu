#include "ops/nn/contrastive/cuda.h"

#include "backend/cuda/sums.cuh"
#include "ops/nn/contrastive/mark.h"

static __device__ inline int64_t place_of(const tr_cuda_pair_tile_args &a, int64_t r) {
    return (a.first_place + a.first_row + r) % a.groups;
}

static __device__ inline const float *mark_of(const tr_cuda_pair_tile_args &a,
                                              int64_t group, int text) {
    return a.pool + (group * a.texts + text) * a.row + a.width;
}

static __device__ inline int64_t number_of(const tr_cuda_pair_tile_args &a,
                                           int64_t group, int text) {
    return a.marked ? tr__text_marked(mark_of(a, group, text))
                    : (int64_t)(uint32_t)a.number[group * a.texts + text];
}

// Is column c a candidate of row r?
static __device__ inline bool counts(const tr_cuda_pair_tile_args &a, int64_t r,
                                     int64_t c) {
    int64_t group = a.first_group + c;
    if (a.marked && !(mark_of(a, group, TR_ANCHOR)[0] > 0)) {
        return false;
    }
    bool own = a.text == a.own;
    if (!a.mask_equal || (own && group == place_of(a, r))) {
        return true;
    }
    const int32_t *mine = a.number + (a.first_row + r) * a.texts;
    int64_t asks = (uint32_t)mine[a.asks], wanted = (uint32_t)mine[a.own];
    int64_t is = number_of(a, group, a.text);
    return is != asks && is != wanted && !(own && number_of(a, group, a.asks) == asks);
}

static __device__ inline float factor_of(const tr_cuda_pair_tile_args &a) {
    return (float)(a.scale ? exp((double)*a.scale) : a.factor);
}

extern "C" __global__ void tr_cuda_pair_begin(tr_cuda_pair_tile_args a) {
    TR_CUDA_LOOP(r, a.rows) {
        a.totals[r] = {-INFINITY, 0, 0, 0};
    }
}
TR_CUDA_KERNEL(tr_cuda_pair_begin);

// blockIdx.x: row. Adds the tile's candidates to the row's total.
extern "C" __global__ void tr_cuda_pair_add(tr_cuda_pair_tile_args a) {
    int64_t r = blockIdx.x;
    float *row = a.logits + r * a.columns;
    float factor = factor_of(a), top = -INFINITY;
    tr_cuda_pair_total total = a.totals[r];
    for (int64_t c = threadIdx.x; c < a.columns; c += TR_CUDA_THREADS) {
        float value = counts(a, r, c) ? row[c] * factor : -INFINITY;
        row[c] = value;
        top = fmaxf(top, value);
    }
    top = tr_cuda_block_largest(top);
    double base = top > total.top ? top : total.top, sum = 0;
    for (int64_t c = threadIdx.x; c < a.columns; c += TR_CUDA_THREADS) {
        sum += row[c] == -INFINITY ? 0 : exp(row[c] - base);
    }
    sum = tr_cuda_block_sum(sum);
    int64_t own = place_of(a, r) - a.first_group;
    if (threadIdx.x == 0) {
        // Behind nothing is nothing; NaN stays so.
        total.sum = (total.sum == 0 ? 0 : total.sum * exp(total.top - base)) + sum;
        total.top = base;
        if (a.text == a.own && own >= 0 && own < a.columns) {
            total.own = row[own];
        }
        a.totals[r] = total;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_pair_add);

// blockIdx.x: row. The products become their gradients.
extern "C" __global__ void tr_cuda_pair_slopes(tr_cuda_pair_tile_args a) {
    int64_t r = blockIdx.x, own = a.text == a.own ? place_of(a, r) - a.first_group : -1;
    float *row = a.logits + r * a.columns;
    float factor = factor_of(a);
    tr_cuda_pair_total total = a.totals[r];
    double scale = 0;
    for (int64_t c = threadIdx.x; c < a.columns; c += TR_CUDA_THREADS) {
        double slope = 0;
        if (counts(a, r, c)) {
            float value = row[c] * factor;
            slope = a.slope * (exp(value - total.top) / total.sum - (c == own));
            scale += slope * value;
        }
        row[c] = (float)(slope * factor);
    }
    scale = tr_cuda_block_sum(scale);
    if (threadIdx.x == 0) {
        a.totals[r].scale += scale;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_pair_slopes);

// By one block.
extern "C" __global__ void tr_cuda_pair_sums(tr_cuda_pair_sums_args a) {
    double scale = 0;
    for (int64_t r = threadIdx.x; r < a.rows; r += TR_CUDA_THREADS) {
        tr_cuda_pair_total t = a.totals[r];
        a.each[r] = {a.weight * (t.top + log(t.sum) - t.own), a.anchors ? 1.0 : 0.0,
                     a.anchors && t.own >= t.top ? 1.0 : 0.0};
        scale += t.scale;
    }
    scale = tr_cuda_block_sum(scale);
    if (threadIdx.x == 0 && a.scales) {
        *a.scales += scale;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_pair_sums);

extern "C" __global__ void tr_cuda_pair_scale(tr_cuda_pair_scale_args a) {
    TR_CUDA_LOOP(i, 1) {
        *a.dscale = (float)(*a.scale + (a.add ? *a.dscale : 0));
    }
}
TR_CUDA_KERNEL(tr_cuda_pair_scale);

extern "C" __global__ void tr_cuda_pair_pool(tr_cuda_pair_pool_args a) {
    int64_t row = a.width + TR_TEXT_MARK, wide = a.number ? row : a.width;
    TR_CUDA_LOOP(i, a.there * a.texts * wide) {
        int64_t text = i / wide, c = i % wide;
        int64_t place = (a.first_place + text / a.texts) % a.groups;
        int64_t pooled = (place * a.texts + text % a.texts) * row + c;
        if (a.number) {
            float mark[TR_TEXT_MARK];
            tr__text_mark(a.number[text], mark);
            float behind = c == a.width ? mark[0] : mark[1];
            a.to[pooled] += c < a.width ? a.from[text * a.width + c] : behind;
        } else {
            a.to[text * a.width + c] += a.from[pooled];
        }
    }
}
TR_CUDA_KERNEL(tr_cuda_pair_pool);
