#ifndef TR_OPS_NN_LAYER_NORM_CUDA_H
#define TR_OPS_NN_LAYER_NORM_CUDA_H

#include "ops/nn/dropout/cuda.h"

enum {
    TR_CUDA_NORM_ROWS = 4, // of a block, which has a warp for each
    // Bytes of a row that a thread has in its registers at the most (cuda_rows.cuh):
    // one warp's, or as many warps' of a block as it takes, up to so many.
    TR_CUDA_ROW_BYTES = 64,
    TR_CUDA_ROW_WARPS = 16,
    // Columns of rows whose gradients come from one reading (cuda_both.cuh): a warp's,
    // and the widest, a block's, of up to four vectors in each thread; and the most
    // rows that a thread has in shared memory, the one that is computed with them.
    TR_CUDA_BOTH_WARP = 1024,
    TR_CUDA_BOTH_WIDEST = 8192,
    TR_CUDA_BOTH_STAGES = 4,
};

// A normalization, or a residual sum and its normalization. What is NULL is not wanted.
typedef struct tr_cuda_norm {
    int64_t rows, width;
    float epsilon, inverse;    // 1 / width
    int32_t real;              // tr_dtype of all but mean and rstd
    int32_t vector;            // of kernels themselves: elements of a vector
    const void *r;             // [rows, width], or NULL: x alone is normalized
    const void *x;             // [rows, width]
    const void *weight, *bias; // [width]
    void *sum, *y;             // [rows, width]; sum: r + dropout(x)
    float *mean, *rstd;        // [rows]
    int32_t add_sum, add_y, add_mean, add_rstd;
    tr_cuda_dropout dropout; // of x, beside r
} tr_cuda_norm;

typedef struct tr_cuda_norm_backward {
    int64_t rows, width;
    int32_t real;             // tr_dtype of dy, x, weight and dx
    const void *dy, *x;       // [rows, width]
    const float *mean, *rstd; // [rows]
    const void *weight;       // [width]
    void *dx;                 // [rows, width], or NULL
    int64_t part;             // rows of which there is one sum
    float *dweight, *dbias;   // [ceil(rows / part), width], or NULL
    int32_t add_dx, add_dweight, add_dbias;
    int32_t stages; // of one reading: rows that a thread has in shared memory
    float inverse;  // likewise: 1 / width, as a division takes registers
} tr_cuda_norm_backward;

// What parts of the rows have summed, [parts, width], to sums [width]; NULL: nothing.
// Block x has TR_CUDA_LANES columns, block y one of the two.
typedef struct tr_cuda_norm_parts {
    int64_t parts, width;
    const float *from[2];
    float *sums[2];
    int32_t add[2];
} tr_cuda_norm_parts;

#endif
