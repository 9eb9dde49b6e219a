#ifndef TR_OPS_NN_SWIGLU_CUDA_H
#define TR_OPS_NN_SWIGLU_CUDA_H

#include <stdint.h>

typedef struct tr_cuda_swiglu_args {
    int64_t rows, width; // width: of y
    const void *h;       // [rows, 2 width]: gate, then up
    void *y;             // [rows, width]
    const void *dy;      // [rows, width]
    void *dh;            // [rows, 2 width]
    int32_t real;        // tr_dtype of all of them
    int32_t add;         // to y, to dh
} tr_cuda_swiglu_args;

#endif
