// Pass: values are numbered by their first use. Those that live always keep their
// order, and come first; passing ones follow, sequence by sequence, step by step,
// operand by operand. Passes make values as they need them: what no step came to use is
// dropped, and which of them made it first leaves no trace.
#include "base/memory.h"
#include "plan/flow/passes.h"
#include "plan/flow/plan.h"

typedef struct numbering {
    tr_plan *plan;
    tr_buffer *numbered; // [buffer_count] by their new numbers
    int32_t *number;     // [buffer_count] the new one, -1: none yet
    size_t count;
} numbering;

static void take(numbering *n, int32_t buffer) {
    if (buffer >= 0 && n->number[buffer] < 0) {
        n->number[buffer] = (int32_t)n->count;
        n->numbered[n->count++] = n->plan->buffers[buffer];
    }
}

static void take_kept(numbering *n) {
    for (size_t i = 0; i < n->plan->buffer_count; i++) {
        n->number[i] = -1;
        if (n->plan->buffers[i].sequence < 0) {
            take(n, (int32_t)i);
        }
    }
}

static void take_used(numbering *n, const tr_sequence *sequence) {
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        for (size_t k = 0; k < step->payload.operand_count; k++) {
            take(n, tr__step_operand(n->plan, step, k)->buffer);
        }
    }
}

// Operands of steps that no sequence has any more name nothing.
static void rename_operands(const numbering *n) {
    for (size_t i = 0; i < n->plan->operand_count; i++) {
        int32_t *buffer = &n->plan->operands[i].buffer;
        *buffer = *buffer < 0 ? -1 : n->number[*buffer];
    }
}

tr_status tr__pass_number(tr_plan *plan, tr_error *err) {
    numbering n = {.plan = plan};
    n.numbered = tr__calloc(plan->buffer_count + 1, sizeof *n.numbered);
    n.number = tr__calloc(plan->buffer_count + 1, sizeof *n.number);
    bool good = n.numbered && n.number;
    if (good) {
        take_kept(&n);
        for (int s = 0; s < TR_SEQUENCES; s++) {
            take_used(&n, &plan->sequences[s]);
        }
        rename_operands(&n);
        for (size_t i = 0; i < n.count; i++) {
            plan->buffers[i] = n.numbered[i];
        }
        plan->buffer_count = n.count;
    }
    tr__free(n.numbered);
    tr__free(n.number);
    return good ? TR_OK
                : tr_fail(err, TR_MEMORY, "no memory to number the plan's values");
}
