#ifndef TR_OPS_NN_CONV2D_CUDA_H
#define TR_OPS_NN_CONV2D_CUDA_H

#include <stdint.h>

// What each window sees, as rows of a matrix: [batch * rows * columns, in * p * q], the
// columns in the order of a filter's weights.
typedef struct tr_cuda_windows_args {
    int64_t batch, height, width, in; // of the image
    int64_t rows, columns;            // windows
    int64_t p, q;
    int64_t stride[2], padding[2], dilation[2]; // along the height, the width
    void *image;                                // [batch, height, width, in]
    void *windows;                              // the matrix
    int32_t real;                               // tr_dtype of both
    int32_t add;                                // to the image
} tr_cuda_windows_args;

#endif
