// The parts of tr__plan_check. Each proves its part from the plan as it stands, and
// knows nothing of how the passes came to it.
#ifndef TR_PLAN_CHECK_H
#define TR_PLAN_CHECK_H

#include "plan/plan.h"

// No two buffers that live at the same time overlap, and none lies outside of the
// arena.
tr_status tr__check_memory(const tr_plan *plan, tr_error *err);
// What is kept of the flat buffers has room, in the type it is kept in.
tr_status tr__check_kept(const tr_plan *plan, tr_error *err);
// Inside of each unit program: every operand lies in its block, no result on top of
// another operand, and what is read is what was last written there.
tr_status tr__check_programs(const tr_plan *plan, tr_error *err);
// What backwards and recomputations make again is what the forward made.
tr_status tr__check_remade(const tr_plan *plan, tr_error *err);
// Between steps: everything is done once, in an order in which what a step reads is
// what an earlier one has left there.
tr_status tr__check_steps(const tr_plan *plan, tr_error *err);

// The older check of the steps, beside the proof (proof/prove.h), as an oracle for the
// tests: it follows one walk of each sequence.
tr_status tr__plan_check_walk(const tr_plan *plan, tr_error *err);

#endif
