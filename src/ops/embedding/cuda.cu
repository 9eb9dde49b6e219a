#include "ops/embedding/cuda.h"

#include "backend/cuda/device.cuh"

// The row of an id in the table, -1: it is none of them.
static __device__ int64_t row_of(const tr_cuda_embedding &e, int32_t id) {
    int64_t row = id - e.first;
    return row >= 0 && row < e.tokens ? row : -1;
}

// The row of the table of positions.
static __device__ int64_t place_of(const tr_cuda_embedding &e, int64_t row) {
    return e.places ? e.places[row] : e.position + row % e.length;
}

extern "C" __global__ void tr_cuda_embed(tr_cuda_embed_args a) {
    const tr_cuda_embedding &e = a.of;
    TR_CUDA_LOOP(i, e.rows * e.width) {
        int64_t row = i / e.width, c = i % e.width, token = row_of(e, e.ids[row]);
        float value = a.before ? a.before[i] : 0;
        value += token >= 0 ? a.wte[token * e.width + c] : 0;
        value += a.wpe ? a.wpe[place_of(e, row) * e.width + c] : 0;
        tr_cuda_put(&a.y[i], value, a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_embed);

// A thread has a column, and adds its rows one after the other: the same bits each
// time, whichever ids meet.
extern "C" __global__ void
tr_cuda_embed_tokens_backward(tr_cuda_embed_backward_args a) {
    const tr_cuda_embedding &e = a.of;
    TR_CUDA_LOOP(c, e.width) {
        for (int64_t row = 0; row < e.rows; row++) {
            int64_t token = row_of(e, e.ids[row]);
            if (token >= 0) {
                a.dtable[token * e.width + c] += a.dy[row * e.width + c];
            }
        }
    }
}
TR_CUDA_KERNEL(tr_cuda_embed_tokens_backward);

extern "C" __global__ void
tr_cuda_embed_positions_backward(tr_cuda_embed_backward_args a) {
    const tr_cuda_embedding &e = a.of;
    TR_CUDA_LOOP(i, e.positions * e.width) {
        int64_t p = i / e.width, c = i % e.width;
        float sum = 0;
        int64_t end = e.places || p < e.length ? e.rows : 0;
        for (int64_t row = e.places ? 0 : p; row < end;
             row += e.places ? 1 : e.length) {
            sum += place_of(e, row) == p ? a.dy[row * e.width + c] : 0;
        }
        tr_cuda_put(&a.dtable[i], sum, a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_embed_positions_backward);
