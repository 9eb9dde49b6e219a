#ifndef TR_OPS_ATTENTION_CUDA_H
#define TR_OPS_ATTENTION_CUDA_H

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
    int32_t real;             // tr_dtype of all but lse
    const void *qkv;          // [batch, context, pitch]
    const int32_t *positions; // [batch, context] in each token's document, or NULL
} tr_cuda_attention;

// y: [batch, context, width]; lse: [batch, heads, context] or NULL
typedef struct tr_cuda_attend_args {
    tr_cuda_attention of;
    void *y;
    float *lse;
    int32_t add_y, add_lse;
} tr_cuda_attend_args;

// dy, y, lse as above; dqkv: [batch, context, pitch]
typedef struct tr_cuda_attend_backward_args {
    tr_cuda_attention of;
    const void *dy, *y;
    const float *lse;
    void *dqkv;
    int32_t add; // to dqkv
} tr_cuda_attend_backward_args;

#endif
