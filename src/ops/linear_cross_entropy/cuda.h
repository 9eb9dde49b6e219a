#ifndef TR_OPS_HEAD_CUDA_H
#define TR_OPS_HEAD_CUDA_H

#include "backend/cuda/launchers.h"

// What a row adds to the sums of a loss.
typedef struct tr_cuda_row_sums {
    double loss, count, correct;
} tr_cuda_row_sums;

// Of each row of logits [rows, width], rows with a target: its loss and whether the
// best guess is right, and, with `gradients`, in place the gradient of the loss times
// `seed`; zeros in rows without a target. targets, each: [rows]
TR_CUDA_LAUNCHER void tr_cuda_cross_entropy(float *logits, const int32_t *targets,
                                            int64_t rows, int64_t width, bool gradients,
                                            float seed, tr_cuda_row_sums *each,
                                            void *stream);
// sums: [3], += those of all rows, one after the other
TR_CUDA_LAUNCHER void tr_cuda_add_row_sums(const tr_cuda_row_sums *each, int64_t rows,
                                           double *sums, void *stream);
// rows: [samples], the last of each sample's `length` rows that has a target, or -1
TR_CUDA_LAUNCHER void tr_cuda_last_targets(const int32_t *targets, int64_t samples,
                                           int64_t length, int64_t *rows, void *stream);
// to: [samples, width], the rows [rows] of a block x; zeros for -1
TR_CUDA_LAUNCHER void tr_cuda_take_rows(const float *x, const int64_t *rows,
                                        int64_t samples, int64_t length, int64_t width,
                                        float *to, void *stream);
// y = 0 in the rows that are -1. y: [samples, width]
TR_CUDA_LAUNCHER void tr_cuda_clear_rows(const int64_t *rows, int64_t samples,
                                         int64_t width, float *y, void *stream);

#endif
