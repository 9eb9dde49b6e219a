// Pass: a loss outside of the model. Behind the forward of the last unit on a
// micro-batch the host hands its outputs to the caller, and the walk waits there for
// their gradients, with which the backward begins. Memory of a discrete device is not
// the host's: outputs are copied to it, and gradients back, unless the caller computes
// on the device.
#include "plan/flow/maker.h"
#include "plan/flow/passes.h"
#include "plan/flow/roles.h"

static bool ends_forward(const tr_plan *plan, const tr_plan_step *step) {
    int last = plan->unit_count - 1;
    return tr__step_is_forward(step) && tr__step_ends(step) && step->unit == last &&
           step->segment == plan->units[last].program->segments - 1;
}

static tr_plan_step step_of(const tr_plan_step *forward, tr_verb verb,
                            const char *what) {
    return (tr_plan_step){.label = {.verb = verb, .what = what},
                          .subject = TR_OF_UNIT,
                          .of_micro_batch = true,
                          .unit = forward->unit,
                          .segment = forward->segment,
                          .micro = forward->micro};
}

static void put_copy(tr_editor *editor, tr_plan_step step, tr_region from,
                     tr_region to) {
    tr_space space = editor->plan->buffers[to.value].space;
    step.stream = tr__copy_stream(editor->plan, space);
    step.guard = TR_GUARD_ALWAYS;
    tr__make_copy(editor, step, from, to);
}

// Where the caller has what lies here; the same place where he reaches that.
static tr_region of_caller(tr_editor *editor, tr_region here) {
    const tr_plan *plan = editor->plan;
    if (!plan->request.discrete || tr__hands_on_device(plan) || here.value < 0) {
        return here;
    }
    return (tr_region){tr__edit_value_like(editor, here.value, TR_SPACE_HOST),
                       here.first, here.end};
}

static tr_region gradients_of(const tr_editor *editor, const tr_plan_step *forward) {
    const tr_plan *plan = editor->plan;
    const tr_unit_values *values = &plan->unit_values[editor->kind];
    int32_t value = -1;
    if (editor->kind == TR_SEQUENCE_TRAIN) { // that of the boundary behind the unit
        value = values->gradient[plan->unit_count * values->micros + forward->micro];
    }
    return tr__region(value, plan->units[forward->unit].program->output_grad_bytes);
}

static void put_hand_out(tr_editor *editor, const tr_plan_step *forward) {
    const tr_plan *plan = editor->plan;
    const tr_step_operand *block =
        tr__step_block(plan, forward, TR_PLACE_OUTPUT, 0, false);
    tr_region outputs =
        tr__region(block->buffer, plan->units[forward->unit].program->output_bytes);
    tr_region gradients = gradients_of(editor, forward);
    tr_region given = of_caller(editor, outputs), taken = of_caller(editor, gradients);
    if (given.value != outputs.value) {
        put_copy(editor, step_of(forward, TR_VERB_evict, "outputs"), outputs, given);
    }
    tr__make_hand_out(editor, step_of(forward, TR_VERB_hand_out, "outputs"), given,
                      taken);
    if (taken.value != gradients.value) {
        put_copy(editor, step_of(forward, TR_VERB_fetch, "gradients of outputs"), taken,
                 gradients);
    }
}

static tr_status edit(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    tr_editor editor = tr__edit_begin(plan, kind, err);
    for (size_t i = 0; i < editor.old->count && editor.status == TR_OK; i++) {
        const tr_plan_step *step = &editor.old->steps[i];
        tr__edit_add(&editor, *step);
        if (editor.status == TR_OK && ends_forward(plan, step)) {
            put_hand_out(&editor, step);
        }
    }
    return tr__edit_end(&editor);
}

tr_status tr__pass_hand_out(tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    if (plan->hands_out && tr__plan_runs(plan, plan->unit_count - 1)) {
        status = edit(plan, TR_SEQUENCE_TRAIN, err);
        status = status == TR_OK ? edit(plan, TR_SEQUENCE_EVALUATE, err) : status;
    }
    return status;
}
