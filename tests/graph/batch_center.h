// Two ops over the effective batch, as small as such ops can be: a sum that is a wave
// tensor, and the batch without its mean. They put a barrier between micro-batches, so
// a unit with them has two segments.
#ifndef TEST_GRAPH_BATCH_CENTER_H
#define TEST_GRAPH_BATCH_CENTER_H

#include <tranche/extend/graph.h>

// in: x [B, C]   out: stat [C + 1], one for the wave: the sum of the rows, then their
// number. Has gradients of its own rule op.
extern const tr_op test_op_batch_sum;
// in: x [B, C], stat [C + 1]   out: y [B, C] = x - mean over the wave's rows
extern const tr_op test_op_batch_center;

// Both: x [B, C] -> [B, C].
tr_value test_batch_center(tr_graph *graph, tr_value x);

#endif
