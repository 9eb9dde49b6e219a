#ifndef TR_OPS_NN_MAGNITUDE_CUDA_H
#define TR_OPS_NN_MAGNITUDE_CUDA_H

#include <stdint.h>

enum { TR_CUDA_MAGNITUDES = 3 };

// Columns [first, first + count) with their magnitudes and squared lengths.
typedef struct tr_cuda_magnitude_layer {
    const void *m;        // [count]
    const float *squares; // [count]
    float *dm;            // [count]; NULL: not wanted
    int64_t first, count;
    int32_t add; // to dm
} tr_cuda_magnitude_layer;

// x becomes y, or dy becomes dx.
typedef struct tr_cuda_magnitude_args {
    tr_cuda_magnitude_layer layer[TR_CUDA_MAGNITUDES];
    const void *x; // [rows, width]
    void *y;       // [rows, width], may be x
    int64_t rows, width;
    int32_t layers, real, add;
} tr_cuda_magnitude_args;

typedef struct tr_cuda_magnitude_gradient_args {
    tr_cuda_magnitude_layer layer[TR_CUDA_MAGNITUDES];
    const void *dy, *x; // [rows, width]
    int64_t rows, width;
    int32_t layers, real;
} tr_cuda_magnitude_gradient_args;

#endif
