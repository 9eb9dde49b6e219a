#include "ops/embedding/cuda.h"

#include "backend/cuda/real.cuh"

// The row of an id in the table, -1: it is none of them.
static __device__ int64_t row_of(const tr_cuda_embedding &e, int32_t id) {
    int64_t row = id - e.first;
    return row >= 0 && row < e.tokens ? row : -1;
}

// The row of the table of positions.
static __device__ int64_t place_of(const tr_cuda_embedding &e, int64_t row) {
    return e.places ? e.places[row] : e.position + row % e.length;
}

template <class T> static __device__ void embed(const tr_cuda_embed_args &a) {
    const tr_cuda_embedding &e = a.of;
    const T *wte = (const T *)a.wte, *wpe = (const T *)a.wpe;
    const T *before = (const T *)a.before;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, e.rows * e.width) {
        int64_t row = i / e.width, c = i % e.width, token = row_of(e, e.ids[row]);
        float value = before ? tr_cuda_get(before[i]) : 0;
        value += token >= 0 ? tr_cuda_get(wte[token * e.width + c]) : 0;
        value += wpe ? tr_cuda_get(wpe[place_of(e, row) * e.width + c]) : 0;
        tr_cuda_give(&y[i], value, a.add);
    }
}

extern "C" __global__ void tr_cuda_embed(tr_cuda_embed_args a) {
    TR_CUDA_BY_REAL(a.real, embed, a);
}
TR_CUDA_KERNEL(tr_cuda_embed);

// Is the id of the row that of a row before it? All threads of the block ask.
static __device__ bool is_again(const tr_cuda_embedding &e, int64_t row) {
    __shared__ int32_t met;
    if (threadIdx.x == 0) {
        met = 0;
    }
    __syncthreads();
    for (int64_t r = threadIdx.x; r < row; r += TR_CUDA_THREADS) {
        if (e.ids[r] == e.ids[row]) {
            met = 1; // all threads that find one write the same
        }
    }
    __syncthreads();
    return met != 0;
}

// A block has a row, and does nothing unless its id is the first of its kind. Then it
// adds the gradients of all rows that have the id, one after the other: the same bits
// each time, whichever ids meet.
template <class T>
static __device__ void add_tokens(const tr_cuda_embed_backward_args &a) {
    const tr_cuda_embedding &e = a.of;
    const T *dy = (const T *)a.dy;
    int64_t first = blockIdx.x, token = row_of(e, e.ids[first]);
    if (token < 0 || is_again(e, first)) {
        return;
    }
    float *to = a.dtable + token * e.width;
    for (int64_t row = first; row < e.rows; row++) {
        bool same = e.ids[row] == e.ids[first];
        for (int64_t c = threadIdx.x; same && c < e.width; c += TR_CUDA_THREADS) {
            to[c] += tr_cuda_get(dy[row * e.width + c]);
        }
    }
}

extern "C" __global__ void
tr_cuda_embed_tokens_backward(tr_cuda_embed_backward_args a) {
    TR_CUDA_BY_REAL(a.real, add_tokens, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_embed_tokens_backward);

template <class T>
static __device__ void add_positions(const tr_cuda_embed_backward_args &a) {
    const tr_cuda_embedding &e = a.of;
    const T *dy = (const T *)a.dy;
    TR_CUDA_LOOP(i, e.positions * e.width) {
        int64_t p = i / e.width, c = i % e.width;
        float sum = 0;
        int64_t end = e.places || p < e.length ? e.rows : 0;
        for (int64_t row = e.places ? 0 : p; row < end;
             row += e.places ? 1 : e.length) {
            sum += place_of(e, row) == p ? tr_cuda_get(dy[row * e.width + c]) : 0;
        }
        tr_cuda_put(&a.dtable[i], sum, a.add);
    }
}

extern "C" __global__ void
tr_cuda_embed_positions_backward(tr_cuda_embed_backward_args a) {
    TR_CUDA_BY_REAL(a.real, add_positions, a);
}
TR_CUDA_KERNEL(tr_cuda_embed_positions_backward);
