#include "plan/passes/away.h"

#include "base/memory.h"
#include "plan/flow/maker.h"

#include <string.h>

enum {
    AHEAD = 2,        // computing steps that a value comes back before its own
    SOON = AHEAD + 2, // what is needed again no later than this stays
};

// What is known of a value.
typedef struct passage {
    size_t last, next;          // 1 + the steps between which it is away; 0: none yet
    int64_t from, until;        // which computing steps these are
    int32_t there;              // the value in which it waits
    bool leaves;                // behind step `last`, as the technique says
    int32_t waiting, following; // lists of values: those that go behind the same step,
                                // those that come back before the same; -1: the end
} passage;

typedef struct walk {
    tr_plan *plan;
    const tr_away *technique;
    tr_editor editor;
    passage *of;               // [values] of the sequence before
    int32_t *leaving, *coming; // [steps before] the first value of each list, -1
    int32_t left;              // the last step that takes a value away, by its id
    int32_t left_ahead;        // the same, when the last computing step began
    int32_t limited;           // the last of them that a computing step has waited for
} walk;

void tr__request_nothing_away(tr_plan_request *request) {
    request->boundary_placement = request->saved_placement = TR_SPACE_DEVICE;
}

// The program of a step that computes; what brings states up to date at the end of a
// step names no such value.
static const tr_program *program_of(const tr_plan_step *step) {
    return tr__step_runs(step, TR_VARIANT_TRACK) ? NULL : tr__payload_program(step);
}

static bool is_away(const walk *w, const passage *p) {
    bool soon = p->until - p->from <= SOON && !w->plan->request.no_overlap;
    return p->leaves && p->next > 0 && !soon;
}

// ---- when each value leaves, and comes back

// The value that a step before the pass has in its block, and what is known of it: NULL
// without one.
static passage *passage_of(const walk *w, size_t step, size_t block, int32_t *value) {
    *value = tr__step_operand(w->plan, &w->editor.old->steps[step], block)->buffer;
    return *value < 0 ? NULL : &w->of[*value];
}

static void note_block(walk *w, size_t step, int64_t number, size_t block) {
    const tr_plan_step *at = &w->editor.old->steps[step];
    const tr_program *program = at->payload.program;
    int32_t value;
    passage *p = passage_of(w, step, block, &value);
    if (p && tr__step_is_forward(at)) {
        bool leaves = w->technique->leaves(w->plan, at, &program->blocks[block]);
        p->leaves = (p->last == step + 1 && p->leaves) || leaves;
        p->last = step + 1;
        p->from = number;
    } else if (p && p->next == 0) {
        p->next = step + 1;
        p->until = number;
    }
}

static void note_values(walk *w) {
    int64_t number = 0;
    for (size_t i = 0; i < w->editor.old->count; i++) {
        const tr_program *program = program_of(&w->editor.old->steps[i]);
        number += program != NULL;
        for (size_t block = 0; program && block < program->block_count; block++) {
            note_block(w, i, number, block);
        }
    }
}

// A value sets out for the device before the computing step that lies AHEAD of its own.
static void list_values(walk *w) {
    size_t computing[AHEAD + 1] = {0}; // the last ones, this one included
    bool overlap = !w->plan->request.no_overlap;
    for (size_t i = 0; i < w->editor.old->count; i++) {
        const tr_program *program = program_of(&w->editor.old->steps[i]);
        if (!program) {
            continue;
        }
        memmove(computing + 1, computing, AHEAD * sizeof *computing);
        computing[0] = i;
        for (size_t block = 0; block < program->block_count; block++) {
            int32_t value;
            passage *p = passage_of(w, i, block, &value);
            if (!p || !is_away(w, p)) {
                continue;
            }
            if (p->last == i + 1) {
                p->waiting = w->leaving[i];
                w->leaving[i] = value;
            } else if (p->next == i + 1) {
                int32_t *first = &w->coming[computing[overlap ? AHEAD : 0]];
                p->following = *first;
                *first = value;
            }
        }
    }
}

// ---- the steps

static tr_plan_step copy_step(const walk *w, const tr_plan_step *of, bool leaves) {
    tr_space to = leaves ? w->technique->space : TR_SPACE_DEVICE;
    return (tr_plan_step){.label = {.verb = leaves ? TR_VERB_evict : TR_VERB_fetch,
                                    .what = w->technique->what},
                          .subject = TR_OF_UNIT,
                          .of_micro_batch = true,
                          .stream = tr__copy_stream(w->plan, to),
                          .guard = TR_GUARD_ALWAYS,
                          .unit = of->unit,
                          .micro = of->micro};
}

// `value`: as the steps before the pass name it.
static void take_away(walk *w, int32_t value, const tr_plan_step *forward) {
    int32_t here = tr__edit_stand_in(&w->editor, value);
    passage *p = &w->of[value];
    p->there = tr__edit_value_like(&w->editor, here, w->technique->space);
    w->left =
        tr__make_copy(&w->editor, copy_step(w, forward, true),
                      tr__region_all(w->plan, here), tr__region_all(w->plan, p->there));
}

// Into another value, which steps name from here on.
static void bring_back(walk *w, int32_t value) {
    const passage *p = &w->of[value];
    const tr_plan_step *user = &w->editor.old->steps[p->next - 1];
    tr__edit_renew(&w->editor, value);
    tr__make_copy(&w->editor, copy_step(w, user, false),
                  tr__region_all(w->plan, p->there),
                  tr__region_all(w->plan, tr__edit_stand_in(&w->editor, value)));
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
    for (int32_t v = w->coming[index]; v >= 0; v = w->of[v].following) {
        bring_back(w, v);
    }
    int32_t id = tr__edit_add(&w->editor, *step);
    if (program_of(step)) {
        limit_leaving(w, id);
    }
    for (int32_t v = w->leaving[index]; v >= 0; v = w->of[v].waiting) {
        take_away(w, v, step);
    }
}

static void edit(walk *w) {
    size_t steps = w->editor.old->count;
    memset(w->leaving, -1, steps * sizeof *w->leaving);
    memset(w->coming, -1, steps * sizeof *w->coming);
    note_values(w);
    list_values(w);
    for (size_t i = 0; i < steps; i++) {
        edit_step(w, i);
    }
}

tr_status tr__put_away(tr_plan *plan, const tr_away *technique, tr_error *err) {
    walk w = {.plan = plan,
              .technique = technique,
              .editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err)};
    size_t values = plan->buffer_count, steps = w.editor.old->count;
    w.of = tr__calloc(values + 1, sizeof *w.of);
    w.leaving = tr__calloc(steps + 1, sizeof *w.leaving);
    w.coming = tr__calloc(steps + 1, sizeof *w.coming);
    if (w.of && w.leaving && w.coming) {
        edit(&w);
    } else {
        w.editor.status = tr_fail(err, TR_MEMORY, "no memory to plan what leaves");
    }
    tr_status status = tr__edit_end(&w.editor);
    tr__free(w.of);
    tr__free(w.leaving);
    tr__free(w.coming);
    return status;
}
