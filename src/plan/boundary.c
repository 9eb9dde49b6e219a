// Pass: the inputs of recomputed units wait in another space between their forward and
// their backward (DeepSpeed's cpu_checkpointing).
//
// Behind the forward that has read it, an input leaves; before the recomputation that
// needs it, it comes back. With overlap, leaving goes on beside the next step that
// computes, and coming back beside the two before it: the recomputation and the
// backward of another micro-batch or unit. An input that would have to come back while
// it is still leaving stays.
#include "base/memory.h"
#include "plan/plan.h"

enum {
    AHEAD = 2,        // computing steps that an input comes back before its own
    SOON = AHEAD + 2, // what is needed again no later than this stays
};

typedef struct walk {
    tr_plan *plan;
    const tr_sequence *old;
    tr_sequence edited;
    int32_t *number;    // [copy steps before] their number now; the first is 1
    int64_t *forward;   // [units][micro-batches] which computing step its forward is
    bool *stays;        // [units][micro-batches]
    int32_t *back;      // [units][micro-batches] number of the copy step that brings
                        // it back
    size_t *brought;    // [steps before] 1 + the one whose input comes back before it
    int32_t before;     // copy steps of the old sequence so far
    int32_t copies;     // and of the edited one
    int32_t left;       // the last of them that takes an input away
    int32_t left_ahead; // the same, when the last computing step began
    tr_error *err;
    tr_status status;
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

// Does what the step's unit is given wait elsewhere?
static bool is_away(const walk *w, const tr_plan_step *step) {
    const tr_plan_unit *unit = &w->plan->units[step->unit];
    return unit->recomputed && unit->program->input_bytes > 0 && !w->stays[at(w, step)];
}

static void add(walk *w, tr_plan_step step) {
    if (w->status == TR_OK) {
        w->copies += step.stream == TR_STREAM_COPY;
        w->status = tr__sequence_add(&w->edited, step, w->err);
    }
}

static void add_copy(walk *w, tr_plan_step_kind kind, const tr_plan_step *of) {
    add(w, (tr_plan_step){.kind = kind,
                          .stream = TR_STREAM_COPY,
                          .part = TR_PART_BOUNDARY,
                          .unit = of->unit,
                          .micro = of->micro});
}

// For every recomputation, the step before which its input sets out.
static void find_setting_out(walk *w) {
    size_t computing[AHEAD + 1] = {0}; // the last ones, this one included
    bool overlap = !w->plan->request.no_overlap;
    int64_t number = 0;
    for (size_t i = 0; i < w->old->count; i++) {
        const tr_plan_step *step = &w->old->steps[i];
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

static int32_t later(int32_t a, int32_t b) {
    return a > b ? a : b;
}

// What leaves need not be gone before the step after the next begins.
static int32_t wait_of(walk *w, const tr_plan_step *step) {
    int32_t wait = w->number[step->wait_copy];
    if (computes(step)) {
        bool overlap = !w->plan->request.no_overlap;
        wait = later(wait, overlap ? w->left_ahead : w->left);
        w->left_ahead = w->left;
    }
    if (step->kind == TR_STEP_recompute && is_away(w, step)) {
        wait = later(wait, w->back[at(w, step)]);
    }
    return wait;
}

static void edit_step(walk *w, size_t index) {
    tr_plan_step step = w->old->steps[index];
    if (w->brought[index] > 0) {
        const tr_plan_step *needs = &w->old->steps[w->brought[index] - 1];
        add_copy(w, TR_STEP_fetch, needs);
        w->back[at(w, needs)] = w->copies;
    }
    step.wait_copy = wait_of(w, &step);
    add(w, step);
    if (step.stream == TR_STREAM_COPY) {
        w->number[++w->before] = w->copies;
    }
    if (step.kind == TR_STEP_forward && is_away(w, &step)) {
        add_copy(w, TR_STEP_evict, &step);
        w->left = w->copies;
    }
}

static tr_status edit(walk *w) {
    size_t update_begin = 0;
    find_setting_out(w);
    for (size_t i = 0; i < w->old->count && w->status == TR_OK; i++) {
        update_begin = i == w->plan->update_begin ? w->edited.count : update_begin;
        edit_step(w, i);
    }
    if (w->status == TR_OK) {
        tr__free(w->old->steps);
        w->plan->sequences[TR_SEQUENCE_TRAIN] = w->edited;
        w->plan->update_begin = update_begin;
    } else {
        tr__free(w->edited.steps);
    }
    return w->status;
}

tr_status tr__pass_boundary(tr_plan *plan, tr_error *err) {
    walk w = {.plan = plan, .old = &plan->sequences[TR_SEQUENCE_TRAIN], .err = err};
    const tr_plan_request *r = &plan->request;
    if (r->boundary_home == TR_SPACE_DEVICE || r->inference) {
        return TR_OK;
    }
    size_t inputs = (size_t)plan->unit_count * (size_t)r->accumulation_steps;
    w.number = tr__calloc(w.old->count + 1, sizeof *w.number);
    w.brought = tr__calloc(w.old->count, sizeof *w.brought);
    w.back = tr__calloc(inputs, sizeof *w.back);
    w.forward = tr__calloc(inputs, sizeof *w.forward);
    w.stays = tr__calloc(inputs, sizeof *w.stays);
    tr_status status =
        w.number && w.brought && w.back && w.forward && w.stays
            ? edit(&w)
            : tr_fail(err, TR_MEMORY, "no memory to plan what leaves the device");
    tr__free(w.number);
    tr__free(w.brought);
    tr__free(w.back);
    tr__free(w.forward);
    tr__free(w.stays);
    return status;
}
