// Requests to plan for, and what holds for the order of every plan.
#ifndef TEST_PLAN_ORDERED_H
#define TEST_PLAN_ORDERED_H

#include "plan/flow/plan.h"

// Micro-batch, accumulation steps, wave and recomputed units.
typedef struct test_request_case {
    int64_t m, g, wave, recomputed;
} test_request_case;

enum { TEST_CASES = 8 };
extern const test_request_case test_cases[TEST_CASES];
tr_plan *test_plan_case(const tr_model *model, const test_request_case *c);

const tr_sequence *test_training(const tr_plan *plan);
int64_t test_count_steps(const tr_plan *plan, tr_verb kind);

// As it is printed; for the caller to free.
char *test_plan_text(const tr_plan *plan, bool json, size_t *length);
// The first to write each flat buffer says so, and nobody else.
void test_assert_written_once(const tr_plan *plan);
// From load to unload, in turn, and never more than the ring has slots.
void test_assert_data(const tr_plan *plan);
// After the clearing, all the work, the norm, one update of each flat buffer.
void test_assert_end(const tr_plan *plan);
// Recomputed units keep nothing, and are made again right before their backward.
void test_assert_recomputed(const tr_plan *plan);

#endif
