#ifndef TR_OPS_ATTENTION_CUDA_H
#define TR_OPS_ATTENTION_CUDA_H

#include "backend/cuda/launchers.h"

#include <tranche/op.h>

enum { TR_CUDA_DEPTH_MAX = 256 }; // of a head

// As tr_attention_sizes has them, for the device.
typedef struct tr_cuda_attention {
    int64_t batch, context, heads, depth, group, pairs, width, pitch, keys, values,
        window;
    float scale; // of q . k
    float dropout;
    uint32_t draw_id;
    int64_t down, across; // groups of draws of a head's probabilities
    tr_run_context run;
    const float *qkv;         // [batch, context, pitch]
    const int32_t *positions; // [batch, context] in each token's document, or NULL
} tr_cuda_attention;

// y: [batch, context, width]; lse: [batch, heads, context] or NULL
TR_CUDA_LAUNCHER void tr_cuda_attend(tr_cuda_attention a, float *y, float *lse,
                                     bool add_y, bool add_lse, void *stream);
// dqkv: [batch, context, pitch]
TR_CUDA_LAUNCHER void tr_cuda_attend_backward(tr_cuda_attention a, const float *dy,
                                              const float *y, const float *lse,
                                              float *dqkv, bool add, void *stream);

#endif
