// What changes a result, by accesses: an oracle for the proof of plans.
#ifndef TEST_PLAN_SOUND_H
#define TEST_PLAN_SOUND_H

#include "plan/flow/access.h"

// Are any two accesses of a sequence to the same bytes of memory, one of which writes,
// one after the other by the waits? And does no buffer lose its bytes to another before
// its last access? Looks at each pair of accesses.
bool test_is_sound(const tr_plan *plan, tr_sequence_kind kind,
                   const tr_accesses *accesses);
// Do steps i and i + 1 access the same bytes of a value, one of them writing?
bool test_conflict(const tr_accesses *accesses, size_t i);
// The same, but for working memory, and for what adds up to the same in any order.
bool test_order_matters(const tr_plan *plan, tr_sequence_kind kind,
                        const tr_accesses *accesses, size_t i);
// Does the step write something that a later step of training may read: parameters,
// states, the statistics' request for an end?
bool test_outlives(const tr_plan *plan, const tr_accesses *accesses, size_t i);

#endif
