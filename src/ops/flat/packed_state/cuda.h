// States in other types than f32 on a GPU: where they lie, and what their codes stand
// for.
#ifndef TR_OPS_FLAT_PACKED_STATE_CUDA_H
#define TR_OPS_FLAT_PACKED_STATE_CUDA_H

#include "ops/flat/packed_state/packed_state.h"

// A state of the elements that a kernel goes through, from a whole block on.
typedef struct tr_cuda_packed_state {
    void *first;
    int32_t type; // tr_state_type
    int32_t unused;
} tr_cuda_packed_state;

// The numbers of TR_STATE_I8 and of TR_STATE_U8.
typedef struct tr_cuda_state_maps {
    float value[2][TR_STATE_CODES];
} tr_cuda_state_maps;

#endif
