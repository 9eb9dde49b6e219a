// Ops and their kernels, which launches that differ in their operands alone share.
#ifndef TR_PLAN_FLOW_PREPARED_H
#define TR_PLAN_FLOW_PREPARED_H

#include "plan/flow/plan.h"

// The index of the description among plan->prepared, where it is added if it is new.
// TR_MEMORY.
tr_status tr__plan_prepare(tr_plan *plan, const tr_op_desc *desc, size_t *index,
                           tr_error *err);
// The kernel that such an op has; NULL: none.
const tr_kernel *tr__prepared_kernel(const tr_op_desc *desc);

#endif
