// What comes before and after the steps that measure gradients for the noise scale.
#ifndef TEST_PLAN_GAUGES_H
#define TEST_PLAN_GAUGES_H

#include "plan/plan.h"

bool test_is_gauge(const tr_plan_step *step);
// Does the step add to what the gauge step measures?
bool test_adds_to_gauged(const tr_plan *plan, const tr_plan_step *step,
                         const tr_plan_step *gauge);
// Does it fold that, or hand it on?
bool test_takes_gauged(const tr_plan *plan, const tr_plan_step *step,
                       const tr_plan_step *gauge);

#endif
