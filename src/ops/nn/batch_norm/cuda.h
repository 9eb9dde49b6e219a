#ifndef TR_OPS_NN_BATCH_NORM_CUDA_H
#define TR_OPS_NN_BATCH_NORM_CUDA_H

#include <stdint.h>

// A block has 32 channels (blockIdx.x) of a part of the pixels (blockIdx.y).
typedef struct tr_cuda_pixels {
    int64_t pixels, channels;
    int64_t part; // pixels of a block
    int32_t real; // tr_dtype of images, weights and biases
} tr_cuda_pixels;

// parts: [parts, 2, channels], the sums of x and of its squares
typedef struct tr_cuda_batch_stat_args {
    tr_cuda_pixels s; // the pixels that are there
    const void *x;    // [pixels, channels]
    double *parts;
    int64_t part_count;
    double *stat, *other; // [3, channels], or NULL
    int32_t add_stat, add_other;
} tr_cuda_batch_stat_args;

// mean, variance: [channels], in place of stat; NULL: by stat [3, channels]
typedef struct tr_cuda_batch_norm_args {
    tr_cuda_pixels s;
    const void *x, *residual, *weight, *bias; // residual: NULL, or as x
    const double *stat;
    const float *mean, *variance;
    void *y;
    float epsilon;
    int32_t relu, add;
} tr_cuda_batch_norm_args;

// parts: [parts, 2, channels], the sums of dy and of dy (x - mean)
typedef struct tr_cuda_batch_norm_backward_args {
    tr_cuda_pixels s;
    const void *dy, *x, *y, *weight; // y NULL: there is no ReLU
    const double *stat;              // [3, channels]
    double *parts;
    int64_t part_count;
    void *dx, *dresidual;   // [pixels, channels], or NULL
    double *dstat;          // [3, channels], or NULL
    float *dweight, *dbias; // [channels], or NULL
    float epsilon;
    int32_t add_dx, add_dresidual, add_dstat, add_dweight, add_dbias;
} tr_cuda_batch_norm_backward_args;

// dx from the gradient of the statistic.
typedef struct tr_cuda_batch_slope_args {
    tr_cuda_pixels s;
    int64_t there; // pixels; the gradient of the others is 0
    const double *dstat, *stat;
    const void *x;
    void *dx;
    int32_t add;
} tr_cuda_batch_slope_args;

typedef struct tr_cuda_batch_track_args {
    int64_t channels;
    const double *stat;
    float *mean, *variance;
    int64_t *tracked;
    float momentum;
} tr_cuda_batch_track_args;

#endif
