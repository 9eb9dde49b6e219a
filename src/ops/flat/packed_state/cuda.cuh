// A block of threads reads and writes a block of a state in another type than f32, an
// element a thread: the same bits as on the CPU (cpu.c).
#ifndef TR_OPS_FLAT_PACKED_STATE_CUDA_DEVICE_H
#define TR_OPS_FLAT_PACKED_STATE_CUDA_DEVICE_H

#include "backend/cuda/real.cuh"
#include "backend/cuda/sums.cuh"
#include "ops/flat/packed_state/cuda.h"

static_assert((int)TR_CUDA_THREADS == (int)TR_STATE_BLOCK, "an element has a thread");

// The maps where all threads of a block read them: code i is the nearest up to
// bound[i].
struct tr_cuda_shared_maps {
    float value[2][TR_STATE_CODES], bound[2][TR_STATE_CODES];
};

static __device__ inline void tr_cuda_share_maps(const tr_cuda_state_maps &maps,
                                                 tr_cuda_shared_maps *to) {
    int i = (int)threadIdx.x;
    for (int map = 0; map < 2; map++) {
        const float *value = maps.value[map];
        bool last = i + 1 == TR_STATE_CODES;
        to->value[map][i] = value[i];
        to->bound[map][i] = last ? INFINITY : (value[i] + value[i + 1]) / 2.0F;
    }
    __syncthreads();
}

static __device__ inline unsigned char *
tr_cuda_state_block(const tr_cuda_packed_state &state, int64_t block) {
    return (unsigned char *)state.first + block * TR_STATE_BLOCK_BYTES;
}

// The thread's element of the block. All threads call it; `there`: it is one of the
// state's.
static __device__ inline float tr_cuda_unpack_state(const tr_cuda_packed_state &state,
                                                    const tr_cuda_shared_maps &maps,
                                                    int64_t block, bool there) {
    int64_t i = block * TR_STATE_BLOCK + threadIdx.x;
    if (!there) {
        return 0;
    }
    if (state.type == TR_STATE_F32) {
        return ((const float *)state.first)[i];
    }
    if (state.type == TR_STATE_BF16) {
        return tr_cuda_get(((const tr_cuda_bf16 *)state.first)[i]);
    }
    const unsigned char *at = tr_cuda_state_block(state, block);
    const float *value = maps.value[state.type == TR_STATE_U8];
    return value[at[sizeof(float) + threadIdx.x]] * *(const float *)at;
}

// The first code whose bound is not below the value.
static __device__ inline unsigned char tr_cuda_nearest_code(const float *bound,
                                                            float value) {
    int low = 0, high = TR_STATE_CODES - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        bool above = value > bound[middle];
        low = above ? middle + 1 : low;
        high = above ? high : middle;
    }
    return (unsigned char)low;
}

// Writes it. What lies behind the last element of 8 bits has the code of 0.
static __device__ inline void tr_cuda_pack_state(const tr_cuda_packed_state &state,
                                                 const tr_cuda_shared_maps &maps,
                                                 int64_t block, bool there,
                                                 float value) {
    int64_t i = block * TR_STATE_BLOCK + threadIdx.x;
    if (state.type == TR_STATE_F32 && there) {
        ((float *)state.first)[i] = value;
    }
    if (state.type == TR_STATE_BF16 && there) {
        tr_cuda_set(&((tr_cuda_bf16 *)state.first)[i], value);
    }
    if (state.type == TR_STATE_F32 || state.type == TR_STATE_BF16) {
        return;
    }
    const float least_scale = 1e-38F; // below it a scale has no inverse
    unsigned char *at = tr_cuda_state_block(state, block);
    float scale = tr_cuda_block_largest(there ? fabsf(value) : 0);
    float inverse = 1.0F / (scale > least_scale ? scale : least_scale);
    const float *bound = maps.bound[state.type == TR_STATE_U8];
    at[sizeof scale + threadIdx.x] =
        tr_cuda_nearest_code(bound, there ? value * inverse : 0);
    if (threadIdx.x == 0) {
        *(float *)at = scale;
    }
}

#endif
