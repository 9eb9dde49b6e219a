#ifndef TR_OPS_FLAT_ORTHOGONAL_CUDA_H
#define TR_OPS_FLAT_ORTHOGONAL_CUDA_H

#include "base/stride.h"

#include <stdint.h>

// Blocks that read a matrix in, at most; each leaves a sum of squares.
enum { TR_CUDA_NEWTON_PARTS = 1024 };

// x [rows, columns] becomes y of the type `real`, transposed if it `turns`, and the
// blocks' sums of its squares.
typedef struct tr_cuda_newton_read_args {
    const float *x;
    void *y;
    double *parts; // [blocks]
    int64_t rows, columns;
    int32_t real, turns;
} tr_cuda_newton_read_args;

// x [count] is divided by the root of the sum of the parts, or by eps.
typedef struct tr_cuda_newton_scale_args {
    void *x;
    const double *parts; // [part_count]
    int64_t count, part_count;
    float eps;
    int32_t real;
} tr_cuda_newton_scale_args;

// to = p of + q product, of the type `real`; p 0: `of` is not read.
typedef struct tr_cuda_newton_combine_args {
    const void *of;
    const float *product;
    void *to;
    int64_t count;
    float p, q;
    int32_t real, unused;
} tr_cuda_newton_combine_args;

// The diagonal of x [side, side] gets `times` more.
typedef struct tr_cuda_newton_identity_args {
    void *x;
    int64_t side;
    float times;
    int32_t real;
} tr_cuda_newton_identity_args;

// y, a matrix, gets the elements of its part x [count].
typedef struct tr_cuda_put_part_args {
    const float *x;
    float *y;
    int64_t count;
    tr_stride lies;
} tr_cuda_put_part_args;

// param [count], which are elements from `first` on of what is here of a matrix, is
// multiplied by keep, and loses step times the elements of o, which lies as [columns,
// rows] if it is turned.
typedef struct tr_cuda_orthogonal_args {
    float *param;
    const void *o;
    int64_t first, count, rows, columns;
    tr_stride lies;
    float keep, step;
    int32_t real, turned;
} tr_cuda_orthogonal_args;

#endif
