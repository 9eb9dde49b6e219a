// Batch normalization (Ioffe and Szegedy, arXiv 1502.03167), channels last, in two ops:
// the statistics of the batch, and the batch normalized by them, which is where one
// ends and another begins: between them every micro-batch of the step is to be there.
//
// A statistic is [3, C] f64, so that what is rounded to f32 in the end has, as good as
// always, the same bits however the batch was cut: of each channel the number of
// elements, their mean, and the sum of the squares of their differences from it. Parts
// are merged as in Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm
// for computing sample variances" (1979), eq. 2.1. Missing rows are no elements.
#ifndef TR_OPS_NN_BATCH_NORM_BATCH_NORM_H
#define TR_OPS_NN_BATCH_NORM_BATCH_NORM_H

#include <tranche/extend/op.h>

typedef struct tr_batch_stat_attr {
    float momentum; // of the running statistics: the weight of the new ones
} tr_batch_stat_attr;

typedef struct tr_batch_norm_attr {
    float epsilon;
    bool relu;    // y = max(0, ...), after the residual sum
    bool running; // by running statistics: outside of training
} tr_batch_norm_attr;

// in:  x [B, ..., C]; then states, or nothing: running mean [C], running variance [C],
//      the number of updates that have been tracked [] i64
// out: stat [3, C] f64, one for the wave. After a step that was applied the states are
//      brought up to date, with the variance over one element less than there are, as
//      torch.nn.BatchNorm2d does.
extern const tr_op tr__op_batch_stat;
// The same, with the micro-batch's own beside it.
// out: own [3, C], stat [3, C] f64, one for the whole step, from which states are
// tracked
extern const tr_op tr__op_batch_stat_own;
// The same, with the rank's own in its place: of all its micro-batches.
// out: own [3, C], stat [3, C] f64
extern const tr_op tr__op_batch_stat_rank;
// in:  dstat [3, C] f64, x [B, ..., C], stat [3, C] f64
// out: dx [B, ..., C]
extern const tr_op tr__op_batch_stat_backward;

// in:  x [B, ..., C], stat [3, C] f64 (in training), weight [C], bias [C],
//      residual [B, ..., C] (optional), running mean [C], running variance [C]
//      (optional, and outside of training alone)
// out: y [B, ..., C] = (x - mean) / sqrt(variance + epsilon) * weight + bias + residual
extern const tr_op tr__op_batch_norm;
// in:  dy [B, ..., C], x [B, ..., C], y [B, ..., C] (with relu), stat [3, C] f64,
// weight [C] out: dx [B, ..., C] (as if the statistic were given), dresidual [B, ...,
// C],
//      dstat [3, C] f64, dweight [C], dbias [C]
extern const tr_op tr__op_batch_norm_backward;

// in:  stat [3, C] f64
// out: running mean [C], running variance [C], tracked [] i64: all brought up to date
extern const tr_op tr__op_batch_track;

#endif
