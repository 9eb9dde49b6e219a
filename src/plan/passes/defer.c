// Pass: updates on the host that a step leaves to the next one.
//
// There they go on beside its forwards, on the host's stream: so the device goes on
// with the next step, and waits for no more than the parameters that it needs first.
// The updates are in the sequence twice, at its end and once more at its beginning, in
// the order in which the step fetches what they change (guards: tr_step_guard). What
// lives on NVMe has a pass of its own (stage.c).
#include "base/memory.h"
#include "plan/flow/passes.h"
#include "plan/flow/residency.h"
#include "plan/passes/steps_update.h"

typedef struct writer {
    tr_editor editor;
    size_t updates; // where they begin in the old sequence, which they end
    bool *deferred; // [flats] it is at the beginning, too
} writer;

// All updates are left, or none. Sums in fixed point are scaled anew for each step.
// Sums of another type than f32, and the norms of tensors, need memory on the device
// beside the forwards.
static bool defers(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    bool host = r->optimizer_placement == TR_SPACE_HOST && !tr__plan_uses_nvme(plan) &&
                tr__plan_staying(plan) == 0;
    return host && !r->inference && !r->no_overlap && !r->tensor_norms &&
           !r->matrices && !tr__plan_accumulates(plan);
}

static void defer(writer *w, int32_t flat) {
    const tr_sequence *old = w->editor.old;
    const tr_staged staged = tr__nothing_staged();
    for (size_t i = w->updates; i < old->count && !w->deferred[flat]; i++) {
        tr_plan_step step = old->steps[i];
        step.id = 0;
        step.guard = TR_GUARD_DEFERRED;
        if (step.unit == flat) {
            tr__put_update(&w->editor, step, &staged);
        }
    }
    w->deferred[flat] = true;
}

// Does the step take what an update changes to the device?
static bool fetches(const tr_plan *plan, const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_COPY && step->subject == TR_OF_FLAT &&
           tr__step_operand(plan, step, TR_COPY_FROM)->buffer ==
               plan->flats[step->unit].copy.buffer;
}

// Behind the step that clears the statistics, with which a sequence begins.
static void defer_all(writer *w) {
    const tr_plan *plan = w->editor.plan;
    for (size_t i = 0; i < w->updates; i++) {
        const tr_plan_step *step = &w->editor.old->steps[i];
        if (fetches(plan, step)) {
            defer(w, step->unit);
        }
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        defer(w, (int32_t)f);
    }
}

static void write_steps(writer *w) {
    for (size_t i = 0; i < w->updates; i++) {
        const tr_plan_step *step = &w->editor.old->steps[i];
        tr__edit_add(&w->editor, *step);
        if (step->mark == TR_MARK_BEGIN) {
            defer_all(w);
        }
    }
    for (size_t i = w->updates; i < w->editor.old->count; i++) {
        tr_plan_step step = w->editor.old->steps[i];
        step.guard = TR_GUARD_AT_ONCE;
        tr__edit_add(&w->editor, step);
    }
}

tr_status tr__pass_defer(tr_plan *plan, tr_error *err) {
    writer w = {.updates = tr__first_update(&plan->sequences[TR_SEQUENCE_TRAIN])};
    if (!defers(plan)) {
        return TR_OK;
    }
    w.editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err);
    w.deferred = tr__calloc(plan->flat_count + 1, sizeof *w.deferred);
    if (w.deferred) {
        write_steps(&w);
    } else {
        w.editor.status = tr_fail(err, TR_MEMORY, "no memory to plan updates");
    }
    tr__free(w.deferred);
    return tr__edit_end(&w.editor);
}
