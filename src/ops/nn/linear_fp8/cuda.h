#ifndef TR_OPS_NN_LINEAR_FP8_CUDA_H
#define TR_OPS_NN_LINEAR_FP8_CUDA_H

#include <stdint.h>

enum {
    TR_CUDA_FP8_PARTS = 256,     // of a tensor whose largest value is searched, at most
    TR_CUDA_FP8_SEARCHING = 512, // threads of a block that searches
    TR_CUDA_FP8_ROWS = 128,      // of x that a block rounds
    TR_CUDA_FP8_COLUMNS = 64,
};

// parts: the bits of the largest absolute value of what each block reads of x [count],
// as f32.
typedef struct tr_cuda_fp8_largest_args {
    const void *x;
    int64_t count;
    uint32_t *parts;
    int32_t real; // tr_dtype of x
} tr_cuda_fp8_largest_args;

// Codes of 8 bits of x [rows, width], by the scale that follows from the largest of
// `parts` [part_count, part_step], of each row the first; the inverse of the scale goes
// to `back`. to: [rows, to_row]; across: their transpose, [width, across_row]; both
// with zeros behind what x has, and NULL where they are not wanted. A block of
// TR_CUDA_THREADS threads has a tile of TR_CUDA_FP8_ROWS rows and TR_CUDA_FP8_COLUMNS
// columns.
typedef struct tr_cuda_fp8_round_args {
    const void *x;
    int64_t rows, width;
    const uint32_t *parts;
    uint8_t *to, *across;
    int64_t to_row, across_row;
    float *back;
    int32_t part_count, part_step;
    int32_t real;   // tr_dtype of x
    int32_t format; // tr_fp8
} tr_cuda_fp8_round_args;

#endif
