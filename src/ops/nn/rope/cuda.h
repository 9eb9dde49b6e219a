#ifndef TR_OPS_NN_ROPE_CUDA_H
#define TR_OPS_NN_ROPE_CUDA_H

#include <stdint.h>

enum { TR_CUDA_ROPE_PAIRS = 128 }; // of a head, at most; threads of a block

typedef struct tr_cuda_rope_args {
    int64_t rows, context, width; // rows: of all samples
    int64_t depth, heads;         // heads that are turned
    int64_t position;             // of the first row of a sample
    const int32_t *positions;     // [rows] in documents, or NULL: each sample is one
    const void *x;                // [rows, width]
    void *y;                      // [rows, width], may lie on x
    int32_t real;                 // tr_dtype of x and y
    int32_t add;
    float direction;                      // 1, or -1: back
    float size;                           // of the turned elements
    double frequency[TR_CUDA_ROPE_PAIRS]; // of each pair, in turns by position
} tr_cuda_rope_args;

#endif
