#ifndef TR_OPS_NN_EMBEDDING_CUDA_H
#define TR_OPS_NN_EMBEDDING_CUDA_H

#include <stdint.h>

typedef struct tr_cuda_embedding {
    int64_t rows, length, width; // rows: of all samples; length: of one
    int64_t tokens, first;       // rows of the table; id of its first
    int64_t positions, position; // rows of wpe; of the first token of each sample
    const int32_t *ids;          // [rows]
    const int32_t *places;       // [rows] of wpe, or NULL: one after the other
} tr_cuda_embedding;

// y = before + wte[ids] + wpe[places]. wpe, before: or NULL
typedef struct tr_cuda_embed_args {
    tr_cuda_embedding of;
    const void *wte;    // [tokens, width]
    const void *wpe;    // [positions, width]
    const void *before; // [rows, width]
    void *y;            // [rows, width]
    int32_t real;       // tr_dtype of all of them
    int32_t add;        // to y
} tr_cuda_embed_args;

// The gradient of a table; that of the tokens is always added to.
typedef struct tr_cuda_embed_backward_args {
    tr_cuda_embedding of;
    const void *dy; // [rows, width]
    float *dtable;  // as the table
    int32_t real;   // tr_dtype of dy
    int32_t add;    // to dtable
} tr_cuda_embed_backward_args;

#endif
