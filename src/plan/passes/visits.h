// A sequence as a row of visits, and what has to be brought to each and taken from it.
#ifndef TR_PLAN_PASSES_VISITS_H
#define TR_PLAN_PASSES_VISITS_H

#include "plan/flow/plan.h"

// A run of steps that work on one segment of one unit, in one wave. Masks: bit f is the
// unit's flat buffer f.
typedef struct tr_visit {
    int32_t unit, segment;
    int64_t wave;
    uint32_t reads;  // parameters
    uint32_t makes;  // gradients
    uint32_t fetch;  // parameters to be fetched from where they live, before it
    uint32_t gather; // parameters to be gathered from the other ranks, before it
    // Gradients that are handed on after it: no later visit of their scope adds to
    // them; of these, those to which none of the step does.
    uint32_t leave, complete;
} tr_visit;

typedef struct tr_visits {
    tr_visit *visits;
    size_t count;
    int32_t *of; // [steps of the sequence] their visit, -1: none
} tr_visits;

// Of a training or evaluation sequence. Cleared with tr__visits_clear in any case.
tr_status tr__visits_find(const tr_plan *plan, tr_sequence_kind kind, tr_visits *out,
                          tr_error *err);
void tr__visits_clear(tr_visits *visits);

#endif
