#ifndef TR_OPS_NN_SOFTMAX_CUDA_H
#define TR_OPS_NN_SOFTMAX_CUDA_H

#include <stdint.h>

// out = softmax(scale x), or with dy: scale x (dy - the sum of dy x), x being a
// softmax. All [rows, width]; a warp for each row.
typedef struct tr_cuda_softmax_args {
    const void *x, *dy;
    void *out;
    int64_t rows, width;
    float scale;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to out
} tr_cuda_softmax_args;

#endif
