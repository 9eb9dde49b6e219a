// How a pass inserts steps into a sequence: it copies the old steps one after the other
// and puts its own between them. Steps keep their ids, so a limit that one pass states
// holds after the next pass.
#ifndef TR_PLAN_EDITOR_H
#define TR_PLAN_EDITOR_H

#include "plan/values.h"

typedef struct tr_editor {
    tr_plan *plan;
    tr_sequence_kind kind;
    const tr_sequence *old;
    tr_sequence edited;
    tr_values *values;
    tr_error *err;
    tr_status status; // of all so far: after an error nothing is added
} tr_editor;

tr_editor tr__edit_begin(tr_plan *plan, tr_sequence_kind kind, tr_error *err);
// Appends a step, an old one or a new one; its id. 0 after an error.
int32_t tr__edit_add(tr_editor *editor, tr_plan_step step);
// A draft of the step that names nothing yet; appends the step of a draft, with its
// payload.
tr_step_draft tr__edit_draft(tr_plan_step step);
int32_t tr__edit_make(tr_editor *editor, tr_step_draft draft);
// The value that steps before the pass name for the gradients of a flat buffer, as a
// backward makes them; for the sums that these are accumulated into, where they pass.
int32_t tr__edit_grads(tr_editor *editor, int flat);
int32_t tr__edit_sums(tr_editor *editor, int flat);
// Gives the step the payload of a launch of its unit's program (unit_values.h).
void tr__edit_launch(tr_editor *editor, const tr_program *program, tr_plan_step *step);
// A value of this sequence like `like`, but in another space. -1 after an error.
int32_t tr__edit_value(tr_editor *editor, int32_t like, tr_space space);
// What stands in for a value where the pass is now; and from here on another one does
// (stand_ins.h).
int32_t tr__edit_stand_in(tr_editor *editor, int32_t value);
void tr__edit_renew(tr_editor *editor, int32_t value);
// Appends a copy of all of a value to another one, as edit_add does.
int32_t tr__edit_copy(tr_editor *editor, tr_plan_step step, int32_t from, int32_t to);
// `before` is to be done before `after` begins; ids, 0: no limit.
void tr__edit_limit(tr_editor *editor, int32_t before, int32_t after);
// Puts the edited sequence in the place of the old one, unless there was an error.
tr_status tr__edit_end(tr_editor *editor);

#endif
