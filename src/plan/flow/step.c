// Steps: their names, what each kind of them is, their operands, and which program one
// runs.
#include "plan/flow/step.h"

#include "base/memory.h"
#include "plan/flow/plan.h"

#include <assert.h>

const char *tr__verb_name(tr_verb kind) {
    static const char *const names[] = {
#define TR_STEP_NAME(name) #name,
        TR_VERB_LIST(TR_STEP_NAME)
#undef TR_STEP_NAME
    };
    return (unsigned)kind < TR_VERBS ? names[kind] : "";
}

const char *tr__sequence_name(tr_sequence_kind kind) {
    static const char *const names[] = {"train", "evaluate", "inference",
                                        "sync_parameters"};
    return (unsigned)kind < TR_SEQUENCES ? names[kind] : "";
}

const char *tr__part_name(tr_part part) {
    static const char *const names[] = {
        "parameters", "gradients", "statistics", "copy",       "state 0",
        "state 1",    "state 2",   "state 3",    "norms",      "wave tensors",
        "directions", "tensor",    "largest",    "first wave", "boundary"};
    static_assert(sizeof names / sizeof *names == TR_PART_BOUNDARY + 1,
                  "every part has its name");
    return (unsigned)part <= TR_PART_BOUNDARY ? names[part] : "";
}

tr_step_label tr__label_of_part(tr_verb verb, tr_part part) {
    bool usual = part == TR_PART_PARAM || part == TR_PART_COPY;
    return (tr_step_label){.verb = verb, .what = tr__part_name(part), .usual = usual};
}

tr_status tr__sequence_add(tr_sequence *sequence, tr_plan_step step, tr_error *err) {
    if (!tr__grow((void **)&sequence->steps, &sequence->capacity, sequence->count + 1,
                  sizeof *sequence->steps)) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's steps");
    }
    step.id = step.id > 0 ? step.id : ++sequence->ids;
    sequence->steps[sequence->count++] = step;
    return TR_OK;
}

size_t tr__sequence_update(const tr_sequence *sequence) {
    size_t i = 0;
    while (i < sequence->count && sequence->steps[i].mark != TR_MARK_DECISION) {
        i++;
    }
    return i < sequence->count ? i + 1 : i;
}

tr_step_operand *tr__step_operand(const tr_plan *plan, const tr_plan_step *step,
                                  size_t i) {
    return &plan->operands[step->payload.operand + i];
}

int64_t tr__operand_bytes(const tr_step_operand *operand) {
    return operand->end - operand->first;
}

const tr_program *tr__payload_program(const tr_plan_step *step) {
    bool launch = step->shape == TR_STEP_IS_LAUNCH;
    return launch ? step->payload.program : NULL;
}

bool tr__step_runs(const tr_plan_step *step, tr_variant variant) {
    const tr_program *program = tr__payload_program(step);
    return program && program->variant == variant;
}

bool tr__step_is_forward(const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    return program && (program->variant == TR_VARIANT_FORWARD ||
                       program->variant == TR_VARIANT_SAVES_NOTHING ||
                       program->variant == TR_VARIANT_EVALUATE ||
                       program->variant == TR_VARIANT_INFERENCE);
}

bool tr__step_runs_weights(const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    return program && program->weights;
}

bool tr__step_begins(const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    return program && program->begins;
}

bool tr__step_ends(const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    return program && program->ends;
}

bool tr__step_reads_file(const tr_plan *plan, const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_FILE &&
           tr__step_operand(plan, step, TR_FILE_STORED)->mode == TR_ACCESS_READ;
}

bool tr__step_touches(const tr_plan *plan, const tr_plan_step *step, int32_t buffer) {
    bool some = false;
    for (size_t i = 0; i < step->payload.operand_count; i++) {
        some = some || tr__step_operand(plan, step, i)->buffer == buffer;
    }
    return some && buffer >= 0;
}

static bool writes(const tr_plan *plan, const tr_plan_step *step, int block) {
    return tr__step_operand(plan, step, (size_t)block)->mode == TR_ACCESS_WRITE;
}

bool tr__step_adds(const tr_plan *plan, const tr_plan_step *step,
                   const tr_instruction *at, int i) {
    return (at->accumulate >> i & 1) ||
           ((at->first >> i & 1) && !writes(plan, step, at->out[i].block));
}

bool tr__step_packs(const tr_plan *plan, const tr_plan_step *step,
                    const tr_instruction *at) {
    return at->packed.place != TR_PLACE_NONE && writes(plan, step, at->packed.block);
}

bool tr__step_is_of_wave(const tr_plan_step *step) {
    bool exchanges = step->shape == TR_STEP_IS_EXCHANGE;
    bool ops = step->shape == TR_STEP_IS_LAUNCH && !step->payload.program;
    return step->subject == TR_OF_UNIT && (exchanges || ops) && !step->of_micro_batch;
}

bool tr__step_is_of_unit(const tr_plan_step *step) {
    bool tracks = tr__step_runs(step, TR_VARIANT_TRACK);
    return (tr__payload_program(step) && !tracks) || tr__step_is_of_wave(step);
}

const tr_op *tr__step_op(const tr_plan *plan, const tr_plan_step *step) {
    const tr_payload *payload = &step->payload;
    bool ops = step->shape == TR_STEP_IS_LAUNCH && payload->op_count > 0;
    return ops ? plan->prepared[plan->launches[payload->op].op].desc.op : NULL;
}

const char *tr__step_subject(const tr_plan *plan, const tr_plan_step *step) {
    switch (step->subject) {
    case TR_OF_FLAT:
        return plan->flats[step->unit].name;
    case TR_OF_UNIT:
        return plan->request.model->units[step->unit].name;
    default:
        return NULL;
    }
}
