// What comes before and after the steps that measure gradients for the noise scale.
#ifndef TEST_PLAN_GAUGES_H
#define TEST_PLAN_GAUGES_H

#include "plan/flow/plan.h"

bool test_is_micro_norm(const tr_plan_step *step);
// Does the step add to what the micro_norm step measures?
bool test_adds_to_micro_norm(const tr_plan *plan, const tr_plan_step *step,
                             const tr_plan_step *micro_norm);
// Does it accumulate that, or hand it on?
bool test_takes_micro_norm(const tr_plan *plan, const tr_plan_step *step,
                           const tr_plan_step *micro_norm);

#endif
