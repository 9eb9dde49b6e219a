// A step in two passes, as other passes have to know it.
#ifndef TR_PLAN_PASSES_TWO_PASSES_H
#define TR_PLAN_PASSES_TWO_PASSES_H

#include "plan/flow/plan.h"

// The last unit's segment that waits for all micro-batches: it has one.
int tr__loss_barrier(const tr_plan *plan);
// Does a backward behind the loss read the last unit's input?
bool tr__loss_reads_input(const tr_plan *plan);

#endif
