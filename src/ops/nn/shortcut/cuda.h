#ifndef TR_OPS_NN_SHORTCUT_CUDA_H
#define TR_OPS_NN_SHORTCUT_CUDA_H

#include <stdint.h>

typedef struct tr_cuda_shortcut_args {
    int64_t batch, height, width, given; // of x
    int64_t rows, columns, channels;     // of y
    int64_t stride;
    const void *from; // x; backward: dy
    void *to;         // y; backward: dx
    int32_t real;     // tr_dtype of both
    int32_t add;
} tr_cuda_shortcut_args;

#endif
