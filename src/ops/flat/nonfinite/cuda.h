#ifndef TR_OPS_FLAT_NONFINITE_CUDA_H
#define TR_OPS_FLAT_NONFINITE_CUDA_H

#include <stdint.h>

typedef struct tr_cuda_nonfinite_args {
    const void *x; // [count]
    int64_t count;
    double place;
    double *first;
    int32_t real; // tr_dtype of x
} tr_cuda_nonfinite_args;

#endif
