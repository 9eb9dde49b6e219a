// Pass: units whose activations are dropped in the forward and recomputed, from the
// boundary before the unit, right before their backward (Chen et al., arXiv
// 1604.06174).
#include "plan/flow/editor.h"
#include "plan/flow/passes.h"

// What passes from one segment to the next has to stay until the backward, and lies in
// one block with what is kept for it: to drop the one would be to drop the other.
static bool is_worth(const tr_plan *plan, int u) {
    const tr_unit_program *unit = plan->units[u].program;
    return unit->saved_bytes > 0 && unit->segments == 1;
}

// A backward's first segment to run is the last one.
static bool begins_backward(const tr_plan *plan, const tr_plan_step *step) {
    return tr__step_runs(step, TR_VARIANT_BACKWARD) && tr__step_begins(step) &&
           !tr__step_runs_weights(step) && plan->units[step->unit].recomputed &&
           step->segment == plan->units[step->unit].program->segments - 1;
}

// All pieces of a role, on the unit and micro-batch of `like`. The first has the id, so
// that what is ordered by it stays so; 0: one of its own.
static void add_role(tr_editor *editor, tr_verb verb, tr_variant role,
                     const tr_plan_step *like, int32_t id) {
    const tr_unit_program *unit = editor->plan->units[like->unit].program;
    tr_plan_step step = {.label = {.verb = verb},
                         .subject = TR_OF_UNIT,
                         .of_micro_batch = true,
                         .unit = like->unit,
                         .micro = like->micro};
    for (int i = 0; i < tr__unit_pieces(unit, role); i++) {
        step.id = i == 0 ? id : 0;
        tr__edit_launch(editor, tr__unit_piece(unit, role, i), &step);
        tr__edit_add(editor, step);
    }
}

static void edit_step(tr_editor *editor, const tr_plan_step *step) {
    const tr_plan *plan = editor->plan;
    bool forward =
        tr__step_runs(step, TR_VARIANT_FORWARD) && plan->units[step->unit].recomputed;
    if (forward && tr__step_begins(step)) { // it keeps nothing
        add_role(editor, TR_VERB_forward, TR_VARIANT_SAVES_NOTHING, step, step->id);
    }
    if (begins_backward(plan, step)) {
        add_role(editor, TR_VERB_recompute, TR_VARIANT_RECOMPUTE, step, 0);
    }
    if (!forward) {
        tr__edit_add(editor, *step);
    }
}

tr_status tr__pass_recompute(tr_plan *plan, tr_error *err) {
    if (plan->request.inference || plan->request.recomputed_units == 0) {
        return TR_OK;
    }
    for (int u = 0; u < plan->request.recomputed_units; u++) {
        plan->units[u].recomputed = is_worth(plan, u);
    }
    tr_editor editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err);
    for (size_t i = 0; i < editor.old->count; i++) {
        edit_step(&editor, &editor.old->steps[i]);
    }
    return tr__edit_end(&editor);
}
