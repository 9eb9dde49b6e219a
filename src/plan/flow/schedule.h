// Which steps must be done before a step begins: derived from what the steps access.
//
// The sequence is in the order of issue, and the order never changes. Steps of one
// stream are done one after the other. A step depends on the last step before it that
// writes what it reads, and on all steps since then that read what it writes. Of each
// stream only the latest such step counts, because the earlier ones are done before it.
#ifndef TR_PLAN_FLOW_SCHEDULE_H
#define TR_PLAN_FLOW_SCHEDULE_H

#include "plan/flow/access.h"

// For each step and each stream, the latest step of that stream which must be done
// before it; -1: none.
typedef struct tr_dependencies {
    int32_t (*on)[TR_STREAMS]; // [steps]
} tr_dependencies;

// Which of its contributions each step writes, since they are the first. TR_MEMORY.
tr_status tr__adds_find(tr_plan *plan, tr_sequence_kind kind,
                        const tr_accesses *accesses, tr_error *err);

// From the accesses alone. TR_MEMORY. The caller clears `out` in any case.
tr_status tr__schedule_find(const tr_plan *plan, tr_sequence_kind kind,
                            const tr_accesses *accesses, tr_dependencies *out,
                            tr_error *err);
void tr__schedule_clear(tr_dependencies *dependencies);
// The waits of the sequence's steps: for these dependencies, which the sequence's
// limits are added to. TR_MEMORY.
tr_status tr__schedule_waits(tr_plan *plan, tr_sequence_kind kind,
                             tr_dependencies *dependencies, tr_error *err);

// The first and the last step that each buffer of the sequence is needed for, from the
// accesses and the waits. TR_MEMORY.
tr_status tr__lifetimes_find(tr_plan *plan, tr_sequence_kind kind,
                             const tr_accesses *accesses, tr_error *err);

// What one function makes of the accesses of a sequence, for all sequences of a plan.
typedef tr_status tr_scheduling(tr_plan *plan, tr_sequence_kind kind,
                                const tr_accesses *accesses, tr_error *err);
tr_status tr__schedule_all(tr_plan *plan, tr_scheduling *schedule, tr_error *err);

// All that follows from the accesses of a sequence: adds, waits and lifetimes.
tr_status tr__schedule_from(tr_plan *plan, tr_sequence_kind kind,
                            const tr_accesses *accesses, tr_error *err);
// The waits again, when it is known which values share memory (reuse.c).
tr_status tr__reuse_from(tr_plan *plan, tr_sequence_kind kind,
                         const tr_accesses *accesses, tr_error *err);

#endif
