// Every way in which the programs of a plan's units can be spoilt.
#ifndef TEST_PLAN_SPOIL_PROGRAMS_H
#define TEST_PLAN_SPOIL_PROGRAMS_H

#include "plan/flow/plan.h"

struct subject;

typedef struct test_finder {
    // Fails the test where the checker takes the plan as it is now for right.
    void (*must_find)(const tr_plan *plan, const struct subject *subject,
                      const char *what, int a, int b);
    const struct subject *subject; // the plan's
} test_finder;

// Each puts right what it did.
void test_spoil_operands(tr_plan *plan, const test_finder *find);
void test_spoil_stacks(tr_plan *plan, const test_finder *find);
void test_spoil_instructions(tr_plan *plan, const test_finder *find);
void test_spoil_recomputed(tr_plan *plan, const test_finder *find);

#endif
