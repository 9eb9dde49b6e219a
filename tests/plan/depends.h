// What in a plan has to come after what.
#ifndef TEST_PLAN_DEPENDS_H
#define TEST_PLAN_DEPENDS_H

#include "plan/plan.h"

bool test_is_compute(const tr_plan_step *step); // work of a unit on a micro-batch
bool test_is_ring(const tr_plan_step *step);    // a load or unload of data
// Must `later` come after `step`?
bool test_depends(const tr_plan_step *step, const tr_plan_step *later);

#endif
