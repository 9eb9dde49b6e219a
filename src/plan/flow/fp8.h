// Which units multiply in 8 bits.
#ifndef TR_PLAN_FLOW_FP8_H
#define TR_PLAN_FLOW_FP8_H

#include "plan/flow/plan.h"

// Marks the units whose products take operands of 8 bits (tr_plan_unit.fp8), if the
// request asks for it: those with a product that can (TR_REWRITE_FP8), which are the
// model's blocks here, but for the first and the last of them that stay in bf16.
// TR_USAGE: it would leave no block in 8 bits. TR_MEMORY.
tr_status tr__fp8_units(tr_plan *plan, tr_error *err);
// The number of units that multiply in 8 bits.
int tr__plan_fp8_units(const tr_plan *plan);

#endif
