// How a pass inserts steps into a sequence: it copies the old steps one after the other
// and puts its own between them. Steps keep their ids, so a limit that one pass states
// holds after the next pass.
//
// A pass makes the payload of what it inserts (maker.h), and the values that it names.
// Operands of steps behind a renewal name what stands in for their values
// (stand_ins.h); what kernels have packed of a value is packed anew with it.
#ifndef TR_PLAN_FLOW_EDITOR_H
#define TR_PLAN_FLOW_EDITOR_H

#include "plan/flow/plan.h"
#include "plan/flow/stand_ins.h"

// Who has packed a unit's parameters first. A later one packs fewer of them.
typedef enum tr_packed_by {
    TR_PACKED_BY_FORWARD,
    TR_PACKED_BY_RECOMPUTATION,
    TR_PACKED_BY_BACKWARD
} tr_packed_by;

// What is packed of a unit's parameters: the newest of them then, -1: nothing.
typedef struct tr_packed_now {
    int32_t value;
    tr_packed_by by;
} tr_packed_now;

typedef struct tr_editor {
    tr_plan *plan;
    tr_sequence_kind kind;
    const tr_sequence *old;
    tr_sequence edited;
    int32_t last[TR_STREAMS]; // the last step of each stream, by its id; 0: none
    tr_stand_ins now;
    tr_packed_now *packed_of; // [units][2]
    tr_error *err;
    tr_status status; // of all so far: after an error nothing is added
} tr_editor;

// An empty sequence can be edited, too: so it is written.
tr_editor tr__edit_begin(tr_plan *plan, tr_sequence_kind kind, tr_error *err);
// Appends an old step, or a launch of a unit's program, whose operands name what stands
// in for their values now; its id. 0 after an error.
int32_t tr__edit_add(tr_editor *editor, tr_plan_step step);
// Appends a step whose operands name the values that it is to work on.
int32_t tr__edit_append(tr_editor *editor, tr_plan_step step);
// Gives the step the payload of a launch of its unit's program (unit_values.h).
void tr__edit_launch(tr_editor *editor, const tr_program *program, tr_plan_step *step);

// What is edited cannot be, as the status says, whose error the pass has filled in.
void tr__edit_refuse(tr_editor *editor, tr_status status);

// ---- values: -1 after an error

// A new value of this sequence. -1: of no bytes.
int32_t tr__edit_value(tr_editor *editor, tr_ledger_category category, tr_space space,
                       int64_t bytes);
// One like `like`, but in another space.
int32_t tr__edit_value_like(tr_editor *editor, int32_t like, tr_space space);
// What steps before the pass name for a flat buffer: its parameters, on the device; its
// gradients, as a backward makes them; the sums that these are accumulated into, where
// they pass (unit_values.h).
int32_t tr__edit_params(tr_editor *editor, int flat);
int32_t tr__edit_grads(tr_editor *editor, int flat);
int32_t tr__edit_sums(tr_editor *editor, int flat);
// Working memory of the step, in which it makes f32 of sums of another type; -1: they
// are f32. `shared`: with the other steps of this use that may share it.
int32_t tr__edit_convert(tr_editor *editor, const tr_plan_step *step, tr_convert use,
                         bool shared);
// What stands in for a value where the pass is now; and from here on another one does.
int32_t tr__edit_stand_in(tr_editor *editor, int32_t value);
void tr__edit_renew(tr_editor *editor, int32_t value);

// ---- order

// `before` is to be done before `after` begins; ids, 0: no limit.
void tr__edit_limit(tr_editor *editor, int32_t before, int32_t after);
// Puts the edited sequence in the place of the old one, unless there was an error.
tr_status tr__edit_end(tr_editor *editor);

#endif
