// The parts of tr__plan_check. Each proves its part from the plan as it stands, and
// knows nothing of how the passes came to it.
#ifndef TR_PLAN_PROOF_CHECK_H
#define TR_PLAN_PROOF_CHECK_H

#include "plan/flow/passes.h"
#include "plan/flow/plan.h"

// What is kept of the flat buffers has room, in the type it is kept in.
tr_status tr__check_kept(const tr_plan *plan, tr_error *err);
// Inside of each unit program: every operand lies in its block, no result on top of
// another operand, and what is read is what was last written there.
tr_status tr__check_programs(const tr_plan *plan, tr_error *err);
// They are cut where ranks sum what an op makes, and before the sum is touched.
tr_status tr__check_pieces(const tr_plan *plan, tr_error *err);
// A block that programs work in, as faults name it.
const char *tr__check_place_name(tr_place place);
// What ranks of the tensor axis share of a unit is exchanged where it has to be, and
// gradients of which each makes a part are those that they sum.
tr_status tr__check_parts(const tr_plan *plan, tr_error *err);
// What backwards and recomputations recompute is what the forward made.
tr_status tr__check_recomputed(const tr_plan *plan, tr_error *err);

#endif
