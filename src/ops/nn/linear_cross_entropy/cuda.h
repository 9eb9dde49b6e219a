#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_CUDA_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_CUDA_H

#include <stdint.h>

enum { TR_CUDA_LOGITS_THREADS = 512 }; // of a block that has a row of logits

// What a row adds to the sums of a loss.
typedef struct tr_cuda_row_sums {
    double loss, count, correct;
} tr_cuda_row_sums;

// Of each row of logits [rows, width] that has a target: its loss and whether the best
// guess is right, and, with `gradients`, in place the gradient of the loss times
// `seed`; zeros in rows without a target, and behind a row up to element `padded`, a
// multiple of a vector. Rows are `pitch` elements apart. A block of
// TR_CUDA_LOGITS_THREADS has a row; with `kept` it has room in shared memory for
// `padded` logits, and reads them once.
typedef struct tr_cuda_cross_entropy_args {
    void *logits;
    const int32_t *targets; // [rows]
    int64_t width, padded, pitch;
    float seed;
    int32_t gradients, kept;
    int32_t real;        // tr_dtype of the gradients, which begin where their logits do
    int32_t logits_real; // of the logits: f32, or, if the gradients are bf16, that
    tr_cuda_row_sums *each; // [rows]
} tr_cuda_cross_entropy_args;

// sums: [3], += those of all rows, by one block
typedef struct tr_cuda_add_row_sums_args {
    const tr_cuda_row_sums *each; // [rows]
    int64_t rows;
    double *sums;
} tr_cuda_add_row_sums_args;

// rows: [samples], the last of each sample's `length` rows that has a target, or -1
typedef struct tr_cuda_last_targets_args {
    const int32_t *targets; // [samples, length]
    int64_t samples, length;
    int64_t *rows;
} tr_cuda_last_targets_args;

// to: [samples, width], the rows [rows] of x [samples, length, width]; zeros for -1
typedef struct tr_cuda_take_rows_args {
    const void *x;
    const int64_t *rows;
    int64_t samples, length, width;
    void *to;
    int32_t real; // tr_dtype of both
} tr_cuda_take_rows_args;

// y = 0 in the rows that are -1. y: [samples, width]
typedef struct tr_cuda_clear_rows_args {
    const int64_t *rows;
    int64_t samples, width;
    float *y;
} tr_cuda_clear_rows_args;

#endif
