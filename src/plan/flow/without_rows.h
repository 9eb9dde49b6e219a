// Which launches of a training step a micro-batch without rows can do without. All that
// comes of such a micro-batch is zeros that are added to sums. A launch that only adds
// to sums, and whose results none but such launches of the same micro-batch read, can
// be left out. What it would have written may then hold anything; copies may move it
// about, and the caller takes no rows from there. What is sent to other ranks is
// computed, since they count on it.
#ifndef TR_PLAN_FLOW_WITHOUT_ROWS_H
#define TR_PLAN_FLOW_WITHOUT_ROWS_H

#include "plan/flow/plan.h"

// leave_out: [steps of the training sequence]. TR_MEMORY.
tr_status tr__without_rows_find(const tr_plan *plan, bool *leave_out, tr_error *err);

#endif
