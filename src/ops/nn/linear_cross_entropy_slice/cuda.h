#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_SLICE_CUDA_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_SLICE_CUDA_H

#include <stdint.h>

// A block of TR_CUDA_LOGITS_THREADS has a row of logits [rows, width], which are
// `pitch` elements apart. running, best: [rows, 2], before the slice (NULL: it is the
// first) and after it (NULL: not wanted).
typedef struct tr_cuda_slice_fold_args {
    void *logits;
    const int32_t *targets; // [rows], of all classes
    int64_t width, pitch;
    int32_t logits_real; // tr_dtype of the logits: f32 or bf16
    int32_t keeps;       // zeros, in rows without a target and behind the others
    int64_t first;       // class of the slice's first logit
    const double *running;
    const float *best;
    double *running_now;
    float *best_now;
} tr_cuda_slice_fold_args;

// The rows' logits become their gradients, with zeros behind them up to element
// `padded`. before, after, dafter, dbefore: [rows, 2];
// dbefore NULL: not wanted, nor is before read.
typedef struct tr_cuda_slice_soften_args {
    void *logits;
    const int32_t *targets;
    int64_t rows, width, padded, pitch, first;
    int32_t real;        // tr_dtype of the gradients, which begin where their logits do
    int32_t logits_real; // of the logits: f32, or, if the gradients are bf16, that
    const double *before, *after, *dafter;
    double *dbefore;
    int32_t add; // to dbefore
} tr_cuda_slice_soften_args;

// running, drunning: [rows, 2]; best: [rows, 2]; sums: [3], +=
typedef struct tr_cuda_slice_loss_args {
    const double *running;
    const float *best;
    const int32_t *targets; // [rows]
    int64_t rows;
    double *sums, *drunning;
    float seed;
    int32_t add; // to drunning
} tr_cuda_slice_loss_args;

#endif
