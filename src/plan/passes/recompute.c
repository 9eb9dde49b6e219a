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
    return tr__step_runs(step, TR_VARIANT_BACKWARD) &&
           plan->units[step->unit].recomputed &&
           step->segment == plan->units[step->unit].program->segments - 1;
}

// The forward keeps nothing.
static void let_go(tr_editor *editor, tr_plan_step *forward) {
    const tr_unit_program *unit = editor->plan->units[forward->unit].program;
    tr__edit_launch(editor,
                    tr__unit_piece(unit, TR_VARIANT_SAVES_NOTHING, forward->segment),
                    forward);
}

static void add_recompute(tr_editor *editor, const tr_plan_step *backward) {
    tr_plan_step step = {.label = {.verb = TR_VERB_recompute},
                         .subject = TR_OF_UNIT,
                         .of_micro_batch = true,
                         .unit = backward->unit,
                         .micro = backward->micro};
    const tr_unit_program *unit = editor->plan->units[step.unit].program;
    tr__edit_launch(editor, tr__unit_piece(unit, TR_VARIANT_RECOMPUTE, 0), &step);
    tr__edit_add(editor, step);
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
        tr_plan_step step = editor.old->steps[i];
        if (tr__step_runs(&step, TR_VARIANT_FORWARD) &&
            plan->units[step.unit].recomputed) {
            let_go(&editor, &step);
        }
        if (begins_backward(plan, &step)) {
            add_recompute(&editor, &step);
        }
        tr__edit_add(&editor, step);
    }
    return tr__edit_end(&editor);
}
