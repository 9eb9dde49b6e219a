// Two ops of a program's own, on the public interface alone: the mean over the whole
// effective batch, and rows without it. Rows that have no target are no part of the
// mean. A unit that uses them has two segments.
#ifndef TESTS_TRAIN_BATCH_MEAN_H
#define TESTS_TRAIN_BATCH_MEAN_H

#include <tranche/extend/graph.h>

// in: x [B, C] f32, targets [B] i32
// out: sum [C] f32 and count [1] f32 over the wave's rows that have a target
extern const tr_op test_op_wave_sum;
// in: x [B, C], sum [C], count [1]   out: y [B, C] = x - sum / count
extern const tr_op test_op_without_mean;

// x less its mean over the effective batch.
tr_value test_without_mean(tr_graph *graph, tr_value x, tr_value targets);

#endif
