// Values of units' programs that leave the device between the forward that names them
// last and the next step that needs them, and come back before it.
//
// With overlap, leaving goes on beside the next step that computes, and coming back
// beside the two before its own. A value that would have to come back while it is still
// leaving stays.
#ifndef TR_PLAN_PASSES_AWAY_H
#define TR_PLAN_PASSES_AWAY_H

#include "plan/flow/plan.h"

typedef struct tr_away {
    const char *what; // as steps are labelled: "input"
    tr_space space;   // where the values wait: the host
    // Does what the forward's program has in the block leave behind it?
    bool (*leaves)(const tr_plan *plan, const tr_plan_step *forward,
                   const tr_program_block *block);
} tr_away;

// In a plan made for this request all activations stay.
void tr__request_nothing_away(tr_plan_request *request);
// Edits the training sequence. TR_MEMORY.
tr_status tr__put_away(tr_plan *plan, const tr_away *technique, tr_error *err);

#endif
