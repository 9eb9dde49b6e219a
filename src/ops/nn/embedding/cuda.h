#ifndef TR_OPS_NN_EMBEDDING_CUDA_H
#define TR_OPS_NN_EMBEDDING_CUDA_H

#include <stdint.h>

typedef struct tr_cuda_embedding {
    int64_t rows, length, width; // rows: of all samples; length: of one
    int64_t tokens, first;       // rows of the table; id of its first
    int64_t padding;             // 1 + an id without a gradient; 0: none
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

enum {
    TR_CUDA_EMBED_PART = 128, // rows of an id that one thread adds up
    TR_CUDA_EMBED_WAYS = 8,   // sorted runs that become one
};

// The rows that have an id, among the sorted ones.
typedef struct tr_cuda_embed_run {
    int32_t first, end;
} tr_cuda_embed_run;

// Sorts rows by id, and those of one id by their number, as keys: the id above, the row
// in the lower 32 bits.
typedef struct tr_cuda_embed_order_args {
    const int32_t *ids;   // [rows]
    const uint64_t *from; // [rows], in sorted runs of `run` keys
    uint64_t *to;         // [rows]
    int64_t rows, run;
    tr_cuda_embed_run *runs; // [rows]
} tr_cuda_embed_order_args;

// The gradient of a table; that of the tokens is always added to.
typedef struct tr_cuda_embed_backward_args {
    tr_cuda_embedding of;
    const void *dy; // [rows, width]
    float *dtable;  // as the table
    int32_t real;   // tr_dtype of dy
    int32_t add;    // to dtable
    // Of the tokens: sorted rows, and the sums of the parts of TR_CUDA_EMBED_PART rows
    // that are not the first of their id, in the row (their first row / PART).
    const uint64_t *order;         // [rows]
    const tr_cuda_embed_run *runs; // [rows]
    float *parts;                  // [rows / PART, rounded up, width]
} tr_cuda_embed_backward_args;

#endif
