// Tensors repeated along a dimension, and sums along it, which are each other's
// gradients.
#ifndef TR_OPS_NN_BROADCAST_BROADCAST_H
#define TR_OPS_NN_BROADCAST_BROADCAST_H

#include <tranche/extend/op.h>

typedef struct tr_broadcast_attr {
    int32_t times; // how often
    float scale;   // that each result is multiplied with
} tr_broadcast_attr;

// y[b, o, n, i] = scale x[b, o, i].
// in: x [B, outer, inner]   out: y [B, outer, times, inner]
extern const tr_op tr__op_expand;
// y[b, o, i] = scale (x[b, o, 0, i] + ... + x[b, o, times - 1, i]).
// in: x [B, outer, times, inner]   out: y [B, outer, inner]
extern const tr_op tr__op_sum;
// A parameter, `times` times for each sample. The scale is 1.
// in: p [...], of W elements; x [B, ...], its shape alone   out: y [B, times, W]
extern const tr_op tr__op_repeat;
// in: dy [B, times, W], p, its shape alone   out: dp [...] f32
extern const tr_op tr__op_repeat_backward;

#endif
