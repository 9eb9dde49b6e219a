// The payload of a step that runs no unit's program, from its kind and the values that
// its draft names.
#ifndef TR_PLAN_LOWER_H
#define TR_PLAN_LOWER_H

#include "plan/draft.h"
#include "plan/plan.h"

// Gives the draft's step its payload. TR_MEMORY.
tr_status tr__lower_step(tr_plan *plan, tr_sequence_kind kind, tr_step_draft *draft,
                         tr_error *err);

#endif
