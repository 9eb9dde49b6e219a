#ifndef TR_OPS_NN_TEXT_POOL_CUDA_H
#define TR_OPS_NN_TEXT_POOL_CUDA_H

#include "ops/nn/text_pool/text_pool.h"

// from becomes to, one of x [samples, length, width] and y [samples, texts, width].
// places: [samples, length], or NULL. A block has a row of `to`.
typedef struct tr_cuda_text_pool_args {
    const void *from;
    void *to;
    const int32_t *places;
    int64_t length, width;
    tr_text_pool_attr attr;
    int32_t real, add;
} tr_cuda_text_pool_args;

#endif
