// The planner beside a search through all plans.
#ifndef TEST_PLANNER_CHECK_CHOICE_H
#define TEST_PLANNER_CHECK_CHOICE_H

#include "planner/planner.h"

// By budgets from what the largest plan takes of the device to what the smallest does
// not: is what the planner chooses the fastest that fits, and its smallest the
// smallest?
void test_check_budgets(tr_planner_request request);
// What is said of a plan without making it is never more than it takes. Returns whether
// any plan is possible.
bool test_check_bounds(const tr_planner_request *request);

#endif
