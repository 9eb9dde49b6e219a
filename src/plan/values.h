// The values that the steps of a sequence name, as a pass goes through it: of a step
// that the pass inserts, its own; of one that was there, those that stand in for what
// it named.
#ifndef TR_PLAN_VALUES_H
#define TR_PLAN_VALUES_H

#include "plan/draft.h"
#include "plan/stand_ins.h"

typedef struct tr_values tr_values;

// The caller ends *out in any case. TR_MEMORY.
tr_status tr__values_begin(tr_plan *plan, tr_sequence_kind kind, tr_values **out,
                           tr_error *err);
tr_status tr__values_step(tr_values *values, tr_plan_step *step);
// Of a step that names its values itself: its payload.
tr_status tr__values_draft(tr_values *values, tr_step_draft *draft);
// What stands in for values where the pass is.
tr_stand_ins *tr__values_now(tr_values *values);
void tr__values_end(tr_values *values); // NULL-safe

#endif
