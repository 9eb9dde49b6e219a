// Pass: micro-batches of a wave take turns at a unit in whose middle ranks exchange:
// while one exchanges, the others compute.
//
// The pieces of each are there already, one micro-batch after the other; now come all
// first pieces, all second ones and so on. Each micro-batch goes through its pieces in
// their order, and each piece takes one micro-batch after the other, so sums are added
// up as before. What pieces carry is there for each. What a unit recomputes would be,
// too, and is much more: such a unit's backward is left as it is, since a recomputation
// lies between.
//
// The gradient of the first micro-batch alone may be measured when its backward is done
// (micro_norm.c): that one has no other beside it.
#include "plan/flow/editor.h"
#include "plan/flow/passes.h"

// So many take turns at most. A piece between two exchanges may be short; those of
// three others hide most of an exchange, and what pieces carry stays little.
enum { TOGETHER = 4 };

// Steps [first, end) of the sequence: all pieces of a role on one micro-batch.
typedef struct run {
    size_t first, end;
} run;

static bool is_of_role(const tr_plan_step *step, const tr_plan_step *first) {
    const tr_program *a = tr__payload_program(step), *b = first->payload.program;
    return a && a->variant == b->variant && a->segment == b->segment &&
           step->unit == first->unit && step->micro == first->micro;
}

// Empty: no run begins with the step.
static run run_at(const tr_sequence *steps, size_t at) {
    run found = {at, at};
    const tr_plan_step *first = &steps->steps[at];
    bool begins = at < steps->count && first->of_micro_batch &&
                  tr__step_begins(first) && !tr__step_runs_weights(first);
    for (size_t i = at; begins && i < steps->count; i++) {
        if (!is_of_role(&steps->steps[i], first)) {
            break;
        }
        if (tr__step_ends(&steps->steps[i])) {
            found.end = i + 1;
            break;
        }
    }
    return found;
}

static bool exchanges(const tr_sequence *steps, run pieces) {
    bool some = false;
    for (size_t i = pieces.first; i < pieces.end; i++) {
        some = some || steps->steps[i].payload.program->exchange;
    }
    return some;
}

static bool may_be_measured(const tr_plan *plan, const tr_plan_step *step) {
    return tr__step_runs(step, TR_VARIANT_BACKWARD) && step->micro == 0 &&
           plan->asked != TR_MEASURE_NEVER;
}

// Is `next` the same of the wave's next micro-batch?
static bool take_turns(const tr_plan *plan, const tr_sequence *steps, run now,
                       run next) {
    if (now.first == now.end || next.end - next.first != now.end - now.first) {
        return false;
    }
    const tr_plan_step *a = &steps->steps[now.first], *b = &steps->steps[next.first];
    tr_plan_step like = *b;
    like.micro = a->micro;
    int64_t wave = plan->request.wave;
    return is_of_role(&like, a) && b->micro == a->micro + 1 &&
           b->micro / wave == a->micro / wave && exchanges(steps, now) &&
           !may_be_measured(plan, a);
}

// Runs that follow each other and take turns: how many.
static int find_group(const tr_plan *plan, const tr_sequence *steps, size_t at,
                      run group[TOGETHER]) {
    int count = 1;
    group[0] = run_at(steps, at);
    while (count < TOGETHER) {
        run next = run_at(steps, group[count - 1].end);
        if (!take_turns(plan, steps, group[count - 1], next)) {
            break;
        }
        group[count++] = next;
    }
    return count;
}

static void add_in_turns(tr_editor *editor, const run *group, int count) {
    for (size_t piece = 0; piece < group[0].end - group[0].first; piece++) {
        for (int i = 0; i < count; i++) {
            tr__edit_add(editor, editor->old->steps[group[i].first + piece]);
        }
    }
}

tr_status tr__pass_alternate(tr_plan *plan, tr_error *err) {
    if (plan->request.inference || !tr__plan_exchanges_inside(plan)) {
        return TR_OK;
    }
    tr_editor editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err);
    for (size_t i = 0; i < editor.old->count && editor.status == TR_OK;) {
        run group[TOGETHER];
        int count = find_group(plan, editor.old, i, group);
        if (count > 1) {
            add_in_turns(&editor, group, count);
            i = group[count - 1].end;
        } else {
            tr__edit_add(&editor, editor.old->steps[i++]);
        }
    }
    return tr__edit_end(&editor);
}
