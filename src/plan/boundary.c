// Pass: the inputs of recomputed units wait in another space between their forward and
// their backward (DeepSpeed's cpu_checkpointing).
//
// Behind the forward that has read it, an input leaves; before the recomputation that
// needs it, it comes back. With overlap, leaving goes on beside the next step that
// computes, and coming back beside the two before it: the recomputation and the
// backward of another micro-batch or unit. An input that would have to come back while
// it is still leaving stays.
#include "base/memory.h"
#include "plan/editor.h"
#include "plan/passes.h"

enum {
    AHEAD = 2,        // computing steps that an input comes back before its own
    SOON = AHEAD + 2, // what is needed again no later than this stays
};

typedef struct walk {
    tr_plan *plan;
    tr_editor editor;
    int64_t *forward;   // [units][micro-batches] which computing step its forward is
    bool *stays;        // [units][micro-batches]
    size_t *brought;    // [steps before] 1 + the one whose input comes back before it
    int32_t left;       // the last step that takes an input away, by its id
    int32_t left_ahead; // the same, when the last computing step began
    int32_t limited;    // the last of them that a computing step has waited for
} walk;

static bool computes(const tr_plan_step *step) {
    return step->kind == TR_STEP_forward || step->kind == TR_STEP_recompute ||
           step->kind == TR_STEP_backward;
}

// Of the step's unit and micro-batch, in arrays.
static size_t at(const walk *w, const tr_plan_step *step) {
    int64_t micros = w->plan->request.accumulation_steps;
    return (size_t)(step->unit * micros + step->micro);
}

// Do the inputs of the step's unit wait elsewhere?
static bool is_away(const walk *w, const tr_plan_step *step) {
    const tr_plan_unit *unit = &w->plan->units[step->unit];
    return unit->recomputed && unit->program->input_bytes > 0 && !w->stays[at(w, step)];
}

static int32_t add_copy(walk *w, tr_plan_step_kind kind, const tr_plan_step *of) {
    return tr__edit_add(&w->editor, (tr_plan_step){.kind = kind,
                                                   .stream = TR_STREAM_COPY,
                                                   .guard = TR_GUARD_ALWAYS,
                                                   .part = TR_PART_BOUNDARY,
                                                   .unit = of->unit,
                                                   .micro = of->micro});
}

// For every recomputation, the step before which its input sets out.
static void find_setting_out(walk *w) {
    size_t computing[AHEAD + 1] = {0}; // the last ones, this one included
    bool overlap = !w->plan->request.no_overlap;
    int64_t number = 0;
    for (size_t i = 0; i < w->editor.old->count; i++) {
        const tr_plan_step *step = &w->editor.old->steps[i];
        if (!computes(step)) {
            continue;
        }
        for (size_t k = AHEAD; k > 0; k--) {
            computing[k] = computing[k - 1];
        }
        computing[0] = i;
        number++;
        if (step->kind == TR_STEP_forward) {
            w->forward[at(w, step)] = number;
        }
        if (step->kind == TR_STEP_recompute && overlap) {
            w->stays[at(w, step)] = number - w->forward[at(w, step)] <= SOON;
        }
        if (step->kind == TR_STEP_recompute && is_away(w, step)) {
            w->brought[computing[overlap ? AHEAD : 0]] = i + 1;
        }
    }
}

// What leaves must be gone when the step after the next begins.
static void limit_leaving(walk *w, int32_t computing) {
    bool overlap = !w->plan->request.no_overlap;
    int32_t gone = overlap ? w->left_ahead : w->left;
    if (gone != w->limited) {
        tr__edit_limit(&w->editor, gone, computing);
        w->limited = gone;
    }
    w->left_ahead = w->left;
}

static void edit_step(walk *w, size_t index) {
    const tr_plan_step *step = &w->editor.old->steps[index];
    if (w->brought[index] > 0) {
        add_copy(w, TR_STEP_fetch, &w->editor.old->steps[w->brought[index] - 1]);
    }
    int32_t id = tr__edit_add(&w->editor, *step);
    if (computes(step)) {
        limit_leaving(w, id);
    }
    if (step->kind == TR_STEP_forward && is_away(w, step)) {
        w->left = add_copy(w, TR_STEP_evict, step);
    }
}

static tr_status edit(walk *w) {
    find_setting_out(w);
    for (size_t i = 0; i < w->editor.old->count; i++) {
        edit_step(w, i);
    }
    return tr__edit_end(&w->editor);
}

tr_status tr__pass_boundary(tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    if (r->boundary_placement == TR_SPACE_DEVICE || r->inference) {
        return TR_OK;
    }
    walk w = {.plan = plan, .editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err)};
    size_t inputs = (size_t)plan->unit_count * (size_t)r->accumulation_steps;
    w.brought = tr__calloc(w.editor.old->count, sizeof *w.brought);
    w.forward = tr__calloc(inputs, sizeof *w.forward);
    w.stays = tr__calloc(inputs, sizeof *w.stays);
    tr_status status =
        w.brought && w.forward && w.stays
            ? edit(&w)
            : tr_fail(err, TR_MEMORY, "no memory to plan the offload of unit inputs");
    tr__free(w.brought);
    tr__free(w.forward);
    tr__free(w.stays);
    return status;
}
