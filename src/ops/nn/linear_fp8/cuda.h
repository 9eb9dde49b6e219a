#ifndef TR_OPS_NN_LINEAR_FP8_CUDA_H
#define TR_OPS_NN_LINEAR_FP8_CUDA_H

#include <stdint.h>

enum { TR_CUDA_FP8_TILE = 64 };

// largest: at least the bits of each absolute value of x [count], as f32. It is 0, or
// the bits of another part of the tensor, before.
typedef struct tr_cuda_fp8_largest_args {
    const void *x;
    int64_t count;
    uint32_t *largest;
    int32_t real; // tr_dtype of x
} tr_cuda_fp8_largest_args;

// Codes of 8 bits of x [rows, width], by the scale that follows from `largest`; the
// inverse of the scale goes to `back`. to: [rows, to_row]; across: their transpose,
// [width, across_row]; both with zeros behind what x has, and NULL where they are not
// wanted. A block of TR_CUDA_LANES x TR_CUDA_COLUMN_THREADS threads has a tile of
// TR_CUDA_FP8_TILE rows and columns.
typedef struct tr_cuda_fp8_round_args {
    const void *x;
    int64_t rows, width;
    const uint32_t *largest;
    uint8_t *to, *across;
    int64_t to_row, across_row;
    float *back;
    int32_t real;   // tr_dtype of x
    int32_t format; // tr_fp8
} tr_cuda_fp8_round_args;

#endif
