// The parts of a plan: names of kinds, buffers and steps added, and which program a
// step runs. Passes, checker and printer all stand on this.
#include "base/memory.h"
#include "plan/plan.h"

const char *tr_ledger_name(tr_ledger_category category) {
    static const char *const names[] = {
#define TR_LEDGER_NAME(name) #name,
        TR_LEDGER_LIST(TR_LEDGER_NAME)
#undef TR_LEDGER_NAME
    };
    return (unsigned)category < TR_LEDGER_COUNT ? names[category] : "";
}

const char *tr_space_name(tr_space space) {
    static const char *const names[] = {"device", "host", "nvme"};
    return (unsigned)space < TR_SPACES ? names[space] : "";
}

const char *tr__plan_step_name(tr_plan_step_kind kind) {
    static const char *const names[] = {
#define TR_STEP_NAME(name) #name,
        TR_STEP_LIST(TR_STEP_NAME)
#undef TR_STEP_NAME
    };
    return (unsigned)kind < TR_STEP_KINDS ? names[kind] : "";
}

const char *tr__sequence_name(tr_sequence_kind kind) {
    static const char *const names[] = {"train", "evaluate", "answer"};
    return (unsigned)kind < TR_SEQUENCES ? names[kind] : "";
}

int tr__plan_buffer(tr_plan *plan, tr_buffer buffer, tr_error *err) {
    if (!tr__grow((void **)&plan->buffers, &plan->buffer_capacity,
                  plan->buffer_count + 1, sizeof *plan->buffers)) {
        tr_fail(err, TR_MEMORY, "no memory for the plan's buffers");
        return -1;
    }
    plan->buffers[plan->buffer_count] = buffer;
    return (int)plan->buffer_count++;
}

tr_status tr__sequence_add(tr_sequence *sequence, tr_plan_step step, tr_error *err) {
    if (!tr__grow((void **)&sequence->steps, &sequence->capacity, sequence->count + 1,
                  sizeof *sequence->steps)) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's steps");
    }
    for (int i = 0; i < TR_SLOTS; i++) {
        step.buffer[i] = -1;
    }
    sequence->steps[sequence->count++] = step;
    return TR_OK;
}

const tr_program *tr__step_program(const tr_plan *plan, const tr_plan_step *step,
                                   tr_sequence_kind sequence) {
    const tr_unit_program *unit = NULL;
    if (step->kind == TR_STEP_forward || step->kind == TR_STEP_backward ||
        step->kind == TR_STEP_recompute) {
        unit = plan->units[step->unit].program;
    }
    switch (step->kind) {
    case TR_STEP_forward:
        if (sequence == TR_SEQUENCE_ANSWER) {
            return &unit->answer;
        }
        if (sequence == TR_SEQUENCE_EVALUATE) {
            return &unit->evaluate[step->segment];
        }
        return step->lean ? &unit->lean[step->segment] : &unit->forward[step->segment];
    case TR_STEP_backward:
        return &unit->backward[step->segment];
    case TR_STEP_recompute:
        return &unit->recompute;
    default:
        return NULL;
    }
}
