// What the steps of a sequence read and write: a list of accesses for each step, in the
// order of issue. Waits, lifetimes and the proof follow from it (schedule.h).
//
// An access names bytes of a value, rather than a region that was cut beforehand:
// pieces of an update, shards and statistics cut one value in several ways at once.
#ifndef TR_PLAN_FLOW_ACCESS_H
#define TR_PLAN_FLOW_ACCESS_H

#include "plan/flow/plan.h"

typedef struct tr_access {
    int32_t value; // a buffer of the plan
    tr_access_mode mode;
    int64_t first, end; // bytes [first, end) of it
    // 1 + the number of the plan's operand that contributes (tr_step_operand): an add
    // that is a write where nobody has added before (adds.c). 0: it does not.
    size_t contributes;
} tr_access;

// The accesses of one sequence: those of step i are items[begin[i]] to
// items[begin[i + 1] - 1].
typedef struct tr_accesses {
    tr_access *items;
    size_t count, capacity;
    size_t *begin; // [steps + 1]
} tr_accesses;

// The accesses of every step of the sequence, read off its payload. TR_MEMORY. The
// caller clears `out` in any case.
tr_status tr__accesses_find(const tr_plan *plan, tr_sequence_kind kind,
                            tr_accesses *out, tr_error *err);
void tr__accesses_clear(tr_accesses *accesses);

#endif
