// Pass: micro-batches of a wave take turns at a unit in whose middle ranks exchange:
// while one exchanges, the others compute.
//
// The pieces of each are there already, one micro-batch after the other; now come all
// first pieces, all second ones and so on. Each micro-batch goes through its pieces in
// their order, and each piece takes one micro-batch after the other, so sums are added
// up as before. What pieces carry is there for each, and so is what a unit recomputes:
// its recomputation and its backward are one run of pieces.
//
// So many take turns at most as the request says. A piece between two exchanges may be
// short; those of three others hide most of an exchange, and what pieces carry stays
// little.
//
// The gradient of the first micro-batch alone may be measured (micro_norm.c): behind
// each of its pieces, before that of another adds to it.
#include "plan/flow/editor.h"
#include "plan/flow/passes.h"

// Steps [first, end) of the sequence: all pieces of a role on one micro-batch; where a
// unit is recomputed, of that and of the backward behind it.
typedef struct run {
    size_t first, end;
} run;

static bool is_of_role(const tr_plan_step *step, const tr_plan_step *first) {
    const tr_program *a = tr__payload_program(step), *b = first->payload.program;
    return a && a->variant == b->variant && a->segment == b->segment &&
           step->unit == first->unit && step->micro == first->micro;
}

// Empty: none begins with the step.
static run role_at(const tr_sequence *steps, size_t at) {
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

static run run_at(const tr_sequence *steps, size_t at) {
    run found = role_at(steps, at);
    bool again = found.first < found.end &&
                 tr__step_runs(&steps->steps[at], TR_VARIANT_RECOMPUTE);
    found.end = again ? role_at(steps, found.end).end : found.end;
    return found;
}

static bool exchanges(const tr_sequence *steps, run pieces) {
    bool some = false;
    for (size_t i = pieces.first; i < pieces.end; i++) {
        some = some || steps->steps[i].payload.program->exchange;
    }
    return some;
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
           b->micro / wave == a->micro / wave && exchanges(steps, now);
}

// Runs that follow each other and take turns: how many.
static int find_group(const tr_plan *plan, const tr_sequence *steps, size_t at,
                      run group[TR_ALTERNATING_MOST]) {
    int count = 1;
    group[0] = run_at(steps, at);
    while (count < plan->request.alternating) {
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
        run group[TR_ALTERNATING_MOST];
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
