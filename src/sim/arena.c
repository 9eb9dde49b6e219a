// The arenas of a plan over its steps: who has which bytes, and when.
#include "base/arguments.h"
#include "base/memory.h"
#include "plan/flow/access.h"
#include "plan/flow/roles.h"

#include <tranche/plan.h>

static tr_sequence_kind sequence_of(const tr_plan *plan) {
    return plan->request.inference ? TR_SEQUENCE_INFERENCE : TR_SEQUENCE_TRAIN;
}

tr_status tr_plan_steps(const tr_plan *plan,
                        void (*take)(void *user, const tr_planned_step *step),
                        void *user, tr_error *err) {
    if (!plan || !take) {
        return tr__need(NULL, "tr_plan_steps", plan ? "take" : "plan", err);
    }
    const tr_sequence *sequence = &plan->sequences[sequence_of(plan)];
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        const tr_planned_step planned = {
            .size = sizeof planned,
            .kind = tr__verb_name(step->label.verb),
            .what = step->label.usual ? NULL : step->label.what,
            .subject = tr__step_subject(plan, step),
            .stream = tr__stream_name(step->stream),
            .micro_batch = step->of_micro_batch ? step->micro : -1};
        take(user, &planned);
    }
    return TR_OK;
}

// ---- buffers

// What the sequence does with a buffer. Steps; -1: none.
typedef struct use {
    int32_t first, writer, reader;
} use;

static void note(use *of, const tr_access *access, int32_t step) {
    of->first = of->first < 0 ? step : of->first;
    if (access->mode != TR_ACCESS_READ && of->writer < 0) {
        of->writer = step;
    }
    if (access->mode != TR_ACCESS_WRITE) {
        of->reader = step;
    }
}

static tr_status find_uses(const tr_plan *plan, use *uses, tr_error *err) {
    tr_accesses accesses = {0};
    tr_sequence_kind kind = sequence_of(plan);
    tr_status status = tr__accesses_find(plan, kind, &accesses, err);
    for (size_t i = 0; i < plan->buffer_count; i++) {
        uses[i] = (use){-1, -1, -1};
    }
    for (size_t i = 0; status == TR_OK && i < plan->sequences[kind].count; i++) {
        for (size_t k = accesses.begin[i]; k < accesses.begin[i + 1]; k++) {
            note(&uses[accesses.items[k].value], &accesses.items[k], (int32_t)i);
        }
    }
    tr__accesses_clear(&accesses);
    return status;
}

// What the buffer is to the step; "" where it has no word for it.
static const char *role_in(const tr_plan *plan, const tr_plan_step *step,
                           int32_t buffer) {
    for (size_t i = 0; i < step->payload.operand_count; i++) {
        if (tr__step_operand(plan, step, i)->buffer == buffer) {
            return tr__operand_role_name(tr__step_role(plan, step, i));
        }
    }
    return "";
}

// By the step that is the first to touch it.
static void name_passing(const tr_plan *plan, const use *of, int32_t buffer,
                         tr_planned_buffer *out) {
    if (of->first < 0) {
        return;
    }
    const tr_plan_step *step = &plan->sequences[sequence_of(plan)].steps[of->first];
    const char *role = role_in(plan, step, buffer);
    out->what = role[0] ? role : out->what;
    out->subject = tr__step_subject(plan, step);
    out->micro_batch = step->of_micro_batch ? step->micro : -1;
}

// The name of a part that a flat buffer keeps for good. A state may have none.
static const char *part_name(const tr_plan *plan, const tr_flat *flat, int part) {
    const char *state =
        part < TR_PART_STATE ? NULL : tr__state_name(plan, flat, part - TR_PART_STATE);
    return part == TR_PART_GRAD   ? "gradients"
           : part < TR_PART_STATE ? "parameters"
           : state && state[0]    ? state
                                  : tr_ledger_name(TR_LEDGER_optimizer);
}

static bool name_of_flat(const tr_plan *plan, const tr_flat *flat, int32_t buffer,
                         tr_planned_buffer *out) {
    bool is = flat->param.buffer == buffer || flat->sums.buffer == buffer;
    const char *what = flat->param.buffer == buffer ? "parameters" : "gradients";
    for (int part = 0; part < TR_PARTS && !is; part++) {
        is = flat->part[part].buffer == buffer;
        what = is ? part_name(plan, flat, part) : what;
    }
    if (is) {
        out->what = what;
        out->subject = flat->name;
    }
    return is;
}

static void name_kept(const tr_plan *plan, int32_t buffer, tr_planned_buffer *out) {
    for (size_t i = 0; i < plan->flat_count; i++) {
        if (name_of_flat(plan, &plan->flats[i], buffer, out)) {
            return;
        }
    }
    for (int i = 0; i < plan->unit_count; i++) {
        if (plan->units[i].states == buffer || plan->units[i].cache == buffer) {
            out->subject = plan->request.model->units[i].name;
        }
    }
}

static void give(const tr_plan *plan, const use *uses, int32_t number,
                 void (*take)(void *user, const tr_planned_buffer *buffer),
                 void *user) {
    const tr_buffer *buffer = &plan->buffers[number];
    bool kept = buffer->sequence < 0;
    int64_t steps = (int64_t)plan->sequences[sequence_of(plan)].count;
    tr_planned_buffer out = {.size = sizeof out,
                             .space = buffer->space,
                             .category = buffer->category,
                             .offset = buffer->offset,
                             .bytes = buffer->bytes,
                             .first = kept ? 0 : buffer->first,
                             .last = kept ? steps - 1 : buffer->last,
                             .kept = kept,
                             .what = tr_ledger_name(buffer->category),
                             .micro_batch = -1,
                             .writer = uses[number].writer,
                             .reader = uses[number].reader};
    if (kept) {
        name_kept(plan, number, &out);
    } else {
        name_passing(plan, &uses[number], number, &out);
    }
    take(user, &out);
}

tr_status tr_plan_buffers(const tr_plan *plan,
                          void (*take)(void *user, const tr_planned_buffer *buffer),
                          void *user, tr_error *err) {
    if (!plan || !take) {
        return tr__need(NULL, "tr_plan_buffers", plan ? "take" : "plan", err);
    }
    use *uses = tr__calloc(plan->buffer_count + 1, sizeof *uses);
    tr_status status = uses ? find_uses(plan, uses, err)
                            : tr_fail(err, TR_MEMORY, "no memory for the plan's map");
    for (size_t i = 0; status == TR_OK && i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        if (buffer->bytes > 0 &&
            (buffer->sequence < 0 || buffer->sequence == (int)sequence_of(plan))) {
            give(plan, uses, (int32_t)i, take, user);
        }
    }
    tr__free(uses);
    return status;
}
