// How a pass inserts steps into a sequence: it copies the old steps one after the other
// and puts its own between them. Steps keep their ids, so a limit that one pass states
// holds after the next pass.
#ifndef TR_PLAN_EDITOR_H
#define TR_PLAN_EDITOR_H

#include "plan/plan.h"

typedef struct tr_editor {
    tr_plan *plan;
    tr_sequence_kind kind;
    const tr_sequence *old;
    tr_sequence edited;
    tr_error *err;
    tr_status status; // of all so far: after an error nothing is added
} tr_editor;

tr_editor tr__edit_begin(tr_plan *plan, tr_sequence_kind kind, tr_error *err);
// Appends a step, an old one or a new one; its id. 0 after an error.
int32_t tr__edit_add(tr_editor *editor, tr_plan_step step);
// `before` is to be done before `after` begins; ids, 0: no limit.
void tr__edit_limit(tr_editor *editor, int32_t before, int32_t after);
// Puts the edited sequence in the place of the old one, unless there was an error.
tr_status tr__edit_end(tr_editor *editor);

#endif
