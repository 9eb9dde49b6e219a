#ifndef TR_OPS_NN_COLUMNS_CUDA_H
#define TR_OPS_NN_COLUMNS_CUDA_H

#include <stdint.h>

// Columns [first, first + count) of rows of `width`. join_columns is a launch for each
// of its inputs.
typedef struct tr_cuda_columns_args {
    const void *x, *u; // [rows, width], [rows, count]; taking: no u; putting: no x
    void *y;           // [rows, width]; taking: [rows, count]
    int64_t rows, width, first, count;
    float scale;
    int32_t real;  // tr_dtype of all of them
    int32_t add;   // to y
    int32_t clear; // putting: other columns become 0
} tr_cuda_columns_args;

#endif
