// Pass: the inputs of recomputed units wait in another space between their forward and
// their backward (DeepSpeed's cpu_checkpointing).
//
// Behind the forward that has read it, an input leaves; before the recomputation that
// needs it, it comes back. With overlap, leaving goes on beside the next step that
// computes, and coming back beside the two before it: the recomputation and the
// backward of another micro-batch or unit. An input that would have to come back while
// it is still leaving stays.
#include "base/memory.h"
#include "plan/maker.h"
#include "plan/passes.h"
#include "plan/roles.h"

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
    int32_t *away;      // [units][micro-batches] the value that it waits in
    int32_t left;       // the last step that takes an input away, by its id
    int32_t left_ahead; // the same, when the last computing step began
    int32_t limited;    // the last of them that a computing step has waited for
} walk;

static bool computes(const tr_plan_step *step) {
    return tr__step_is_forward(step) || tr__step_runs(step, TR_VARIANT_RECOMPUTE) ||
           tr__step_runs(step, TR_VARIANT_BACKWARD);
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

// The value that the step's program has its input in; -1: it reads none.
static int32_t input_of(const walk *w, const tr_plan_step *step) {
    const tr_step_operand *block =
        tr__step_block(w->plan, step, TR_PLACE_INPUT, 0, false);
    return block ? block->buffer : -1;
}

static tr_plan_step copy_step(tr_plan_step_kind kind, const tr_plan_step *of) {
    return (tr_plan_step){.kind = kind,
                          .stream = TR_STREAM_COPY,
                          .guard = TR_GUARD_ALWAYS,
                          .part = TR_PART_BOUNDARY,
                          .unit = of->unit,
                          .micro = of->micro};
}

// `input`: as the steps before the pass name it.
static void take_away(walk *w, const tr_plan_step *forward, int32_t input) {
    int32_t here = tr__edit_stand_in(&w->editor, input);
    int32_t *there = &w->away[at(w, forward)];
    *there = tr__edit_value_like(&w->editor, here, w->plan->request.boundary_placement);
    w->left =
        tr__make_copy(&w->editor, copy_step(TR_STEP_evict, forward),
                      tr__region_all(w->plan, here), tr__region_all(w->plan, *there));
}

// Into another value, which steps name from here on.
static void bring_back(walk *w, const tr_plan_step *recompute) {
    int32_t input = input_of(w, recompute);
    tr__edit_renew(&w->editor, input);
    tr__make_copy(&w->editor, copy_step(TR_STEP_fetch, recompute),
                  tr__region_all(w->plan, w->away[at(w, recompute)]),
                  tr__region_all(w->plan, tr__edit_stand_in(&w->editor, input)));
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
        if (tr__step_is_forward(step)) {
            w->forward[at(w, step)] = number;
        }
        if (tr__step_runs(step, TR_VARIANT_RECOMPUTE) && overlap) {
            w->stays[at(w, step)] = number - w->forward[at(w, step)] <= SOON;
        }
        if (tr__step_runs(step, TR_VARIANT_RECOMPUTE) && is_away(w, step)) {
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
    int32_t input = input_of(w, step);
    if (w->brought[index] > 0) {
        bring_back(w, &w->editor.old->steps[w->brought[index] - 1]);
    }
    int32_t id = tr__edit_add(&w->editor, *step);
    if (computes(step)) {
        limit_leaving(w, id);
    }
    if (tr__step_is_forward(step) && is_away(w, step)) {
        take_away(w, step, input);
    }
}

static void edit(walk *w) {
    find_setting_out(w);
    for (size_t i = 0; i < w->editor.old->count; i++) {
        edit_step(w, i);
    }
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
    w.away = tr__calloc(inputs, sizeof *w.away);
    if (w.brought && w.forward && w.stays && w.away) {
        edit(&w);
    } else {
        w.editor.status =
            tr_fail(err, TR_MEMORY, "no memory to plan the offload of unit inputs");
    }
    tr_status status = tr__edit_end(&w.editor);
    tr__free(w.brought);
    tr__free(w.forward);
    tr__free(w.stays);
    tr__free(w.away);
    return status;
}
