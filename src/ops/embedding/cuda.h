#ifndef TR_OPS_EMBEDDING_CUDA_H
#define TR_OPS_EMBEDDING_CUDA_H

#include "backend/cuda/launchers.h"

typedef struct tr_cuda_embedding {
    int64_t rows, length, width; // rows: of all samples; length: of one
    int64_t tokens, first;       // rows of the table; id of its first
    int64_t positions, position; // rows of wpe; of the first token of each sample
    const int32_t *ids;          // [rows]
    const int32_t *places;       // [rows] of wpe, or NULL: one after the other
} tr_cuda_embedding;

// wte: [tokens, width]; wpe: [positions, width] or NULL; before, y: [rows, width]
TR_CUDA_LAUNCHER void tr_cuda_embed(tr_cuda_embedding e, const float *wte,
                                    const float *wpe, const float *before, float *y,
                                    bool add, void *stream);
// dy: [rows, width]. dwte: [tokens, width], always added to.
TR_CUDA_LAUNCHER void tr_cuda_embed_tokens_backward(tr_cuda_embedding e,
                                                    const float *dy, float *dwte,
                                                    void *stream);
// dwpe: [positions, width]
TR_CUDA_LAUNCHER void tr_cuda_embed_positions_backward(tr_cuda_embedding e,
                                                       const float *dy, float *dwpe,
                                                       bool add, void *stream);

#endif
