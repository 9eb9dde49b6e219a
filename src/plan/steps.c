// The parts of a plan: names of kinds, buffers and steps added, and which program a
// step runs. Passes, checker and printer all stand on this.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/offsets.h"
#include "plan/plan.h"

#include <assert.h>
#include <string.h>

enum { RECENT = 64 }; // bindings among which an equal one is looked for

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

const char *tr_remake_name(tr_remake one) {
    switch (one) {
    case TR_REMAKE_NORM:
        return "norm";
    case TR_REMAKE_ACTIVATION:
        return "activation";
    case TR_REMAKE_ATTENTION:
        return "attention";
    case TR_REMAKE_RESIDUAL:
        return "residual";
    case TR_REMAKE_PRE_ACTIVATION:
        return "pre_activation";
    case TR_REMAKE_PRODUCT:
        return "product";
    default:
        return "";
    }
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
    static const char *const names[] = {"train", "evaluate", "answer", "fence"};
    return (unsigned)kind < TR_SEQUENCES ? names[kind] : "";
}

const char *tr__stream_name(tr_stream stream) {
    static const char *const names[] = {"compute", "data", "communication", "copy",
                                        "nvme"};
    return (unsigned)stream < TR_STREAMS ? names[stream] : "";
}

const char *tr__part_name(tr_part part) {
    static const char *const names[] = {"parameters", "gradients", "record",  "copy",
                                        "state 0",    "state 1",   "state 2", "state 3",
                                        "norms",      "input"};
    static_assert(sizeof names / sizeof *names == TR_PART_BOUNDARY + 1,
                  "every part has its name");
    return (unsigned)part <= TR_PART_BOUNDARY ? names[part] : "";
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
    step.binding = -1;
    step.id = step.id > 0 ? step.id : ++sequence->ids;
    sequence->steps[sequence->count++] = step;
    return TR_OK;
}

size_t tr__sequence_applied(const tr_sequence *sequence) {
    size_t i = sequence->count;
    while (i > 0 && (sequence->steps[i - 1].guard == TR_GUARD_APPLIED ||
                     sequence->steps[i - 1].guard == TR_GUARD_AT_ONCE)) {
        i--;
    }
    return i;
}

tr_slot tr__place_slot(tr_place place) {
    static const int slots[TR_PLACE_COUNT] = {
        [TR_PLACE_INPUT] = 1 + TR_SLOT_INPUT,
        [TR_PLACE_OUTPUT] = 1 + TR_SLOT_OUTPUT,
        [TR_PLACE_INPUT_GRAD] = 1 + TR_SLOT_INPUT_GRAD,
        [TR_PLACE_OUTPUT_GRAD] = 1 + TR_SLOT_OUTPUT_GRAD,
        [TR_PLACE_SAVED] = 1 + TR_SLOT_SAVED,
        [TR_PLACE_WAVE] = 1 + TR_SLOT_WAVE,
        [TR_PLACE_WAVE_GRAD] = 1 + TR_SLOT_WAVE_GRAD,
        [TR_PLACE_TEMP] = 1 + TR_SLOT_TEMP,
    };
    return (tr_slot)(slots[place] > 0 ? slots[place] - 1 : TR_SLOTS);
}

uint64_t tr__slot_bit(tr_slot slot) {
    return UINT64_C(1) << slot;
}

uint64_t tr__grad_bit(int flat) {
    return UINT64_C(1) << (TR_SLOTS + flat);
}

uint64_t tr__operand_bit(const tr_operand *operand) {
    return operand->place == TR_PLACE_PARAM_GRAD
               ? tr__grad_bit(operand->flat)
               : tr__slot_bit(tr__place_slot(operand->place));
}

bool tr__step_adds(const tr_plan_step *step, const tr_instruction *at, int i) {
    bool writes = step->writes & tr__operand_bit(&at->out[i]);
    return (at->accumulate >> i & 1) || ((at->first >> i & 1) && !writes);
}

int32_t tr__plan_bind(tr_plan *plan, const tr_binding *binding, tr_error *err) {
    // Steps of one visit to a unit follow each other, and share theirs.
    size_t oldest = plan->binding_count > RECENT ? plan->binding_count - RECENT : 0;
    for (size_t i = plan->binding_count; i-- > oldest;) {
        if (memcmp(&plan->bindings[i], binding, sizeof *binding) == 0) {
            return (int32_t)i;
        }
    }
    if (!tr__grow((void **)&plan->bindings, &plan->binding_capacity,
                  plan->binding_count + 1, sizeof *plan->bindings)) {
        tr_fail(err, TR_MEMORY, "no memory for the plan's bindings");
        return -1;
    }
    plan->bindings[plan->binding_count] = *binding;
    return (int32_t)plan->binding_count++;
}

static bool is_at(const tr_operand *operand, tr_place place) {
    return operand->place == place;
}

uint32_t tr__program_flats(const tr_program *program, tr_place place) {
    uint32_t flats = 0;
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.in_count; k++) {
            flats |= is_at(&at->in[k], place) ? UINT32_C(1) << at->in[k].flat : 0;
        }
        for (int k = 0; k < at->desc.out_count; k++) {
            flats |= is_at(&at->out[k], place) ? UINT32_C(1) << at->out[k].flat : 0;
        }
    }
    return flats;
}

int32_t tr__combine_buffer(const tr_plan_step *step) {
    return step->buffer[step->backward ? TR_SLOT_WAVE_GRAD : TR_SLOT_WAVE];
}

const tr_operand *tr__program_result(const tr_program *program, size_t at,
                                     const tr_tensor_desc **desc) {
    for (size_t i = 0; i < program->count; i++) {
        size_t count = (size_t)program->instructions[i].desc.out_count;
        if (at < count) {
            *desc = &program->instructions[i].desc.out[at];
            return &program->instructions[i].out[at];
        }
        at -= count;
    }
    return NULL;
}

static const tr_op *op_at(const tr_program *program, size_t at, int *output) {
    size_t i = 0;
    while (at >= (size_t)program->instructions[i].desc.out_count) {
        at -= (size_t)program->instructions[i++].desc.out_count;
    }
    *output = (int)at;
    return program->instructions[i].desc.op;
}

// The op whose output the wave tensor at `offset` is, among those of a segment; NULL:
// none of them.
static const tr_op *wave_op(const tr_program *program, int64_t offset, int *output) {
    const tr_tensor_desc *desc = NULL;
    const tr_operand *result;
    for (size_t at = 0; (result = tr__program_result(program, at, &desc)); at++) {
        if (result->place == TR_PLACE_WAVE && result->offset == offset) {
            return op_at(program, at, output);
        }
    }
    return NULL;
}

// A gradient lies as its tensor does, and is of the same ranks.
static tr_wave_tensor wave_tensor(const tr_unit_program *unit, bool backward,
                                  int64_t offset, const tr_tensor_desc *desc) {
    const tr_op *op = NULL;
    int output = 0;
    for (int s = 0; s < unit->segments && !op; s++) {
        op = wave_op(&unit->forward[s], offset, &output);
    }
    return (tr_wave_tensor){.offset = offset,
                            .bytes = tr_tensor_bytes(*desc),
                            .desc = *desc,
                            .op = backward ? NULL : op,
                            .own = op && (op->rank_outputs >> output & 1)};
}

bool tr__program_repeats(const tr_program *program, size_t at,
                         const tr_operand *result) {
    const tr_tensor_desc *desc = NULL;
    for (size_t i = 0; i < at; i++) {
        const tr_operand *other = tr__program_result(program, i, &desc);
        if (other->place == result->place && other->flat == result->flat &&
            other->offset == result->offset) {
            return true;
        }
    }
    return false;
}

const tr_operand *tr__unit_gradient(const tr_unit_program *unit, int segment,
                                    size_t *next, int64_t *count) {
    const tr_program *program = &unit->backward[segment];
    const tr_tensor_desc *desc = NULL;
    const tr_operand *result;
    while ((result = tr__program_result(program, *next, &desc)) != NULL) {
        size_t at = (*next)++;
        if (result->place == TR_PLACE_PARAM_GRAD && result->flat == 0 &&
            !tr__program_repeats(program, at, result)) {
            *count = tr_shape_count(desc->shape);
            return result;
        }
    }
    return NULL;
}

bool tr__combine_next(const tr_plan *plan, const tr_plan_step *step, size_t *next,
                      tr_wave_tensor *tensor) {
    const tr_unit_program *unit = plan->units[step->unit].program;
    const tr_program *program =
        step->backward ? &unit->backward[step->segment] : &unit->forward[step->segment];
    tr_place place = step->backward ? TR_PLACE_WAVE_GRAD : TR_PLACE_WAVE;
    const tr_tensor_desc *desc = NULL;
    const tr_operand *result;
    while ((result = tr__program_result(program, *next, &desc)) != NULL) {
        size_t at = (*next)++;
        if (result->place == place && !tr__program_repeats(program, at, result)) {
            *tensor = wave_tensor(unit, step->backward, result->offset, desc);
            return true;
        }
    }
    return false;
}

int32_t tr__step_wait(const tr_plan_step *step, tr_stream stream) {
    switch (stream) {
    case TR_STREAM_COMM:
        return step->wait;
    case TR_STREAM_COPY:
        return step->wait_copy;
    case TR_STREAM_NVME:
        return step->wait_nvme;
    default: // done when the next step begins
        return 0;
    }
}

int64_t tr__wave_parts(const tr_plan *plan, tr_sequence_kind sequence) {
    bool apart = plan->request.reproducible && sequence == TR_SEQUENCE_TRAIN;
    return apart ? plan->request.accumulation_steps : 1;
}

bool tr__wave_is_step(const tr_unit_program *unit) {
    return tr__graph_barriers(unit->graph, 1, unit->segments) == 0;
}

int64_t tr__combine_bytes(const tr_plan *plan, const tr_plan_step *step) {
    tr_wave_tensor tensor;
    int64_t most = 0;
    size_t next = 0;
    while (plan->request.ranks > 1 && tr__combine_next(plan, step, &next, &tensor)) {
        most = tr__max_i64(most, tensor.own ? 0 : tensor.bytes);
    }
    return most * tr__wave_parts(plan, TR_SEQUENCE_TRAIN) * plan->request.ranks;
}

// What a step of a kind works on.
typedef enum subject { NOBODY, UNIT, FLAT } subject;

static const struct kind {
    tr_step_shape shape;
    subject subject;
    bool of_micro_batch;
} of_kind[TR_STEP_KINDS] = {
    [TR_STEP_load] = {TR_STEP_IS_FEED, NOBODY, true},
    [TR_STEP_unload] = {TR_STEP_IS_FEED, NOBODY, true},
    [TR_STEP_forward] = {TR_STEP_IS_LAUNCH, UNIT, true},
    [TR_STEP_recompute] = {TR_STEP_IS_LAUNCH, UNIT, true},
    [TR_STEP_backward] = {TR_STEP_IS_LAUNCH, UNIT, true},
    [TR_STEP_combine] = {TR_STEP_IS_LAUNCH, UNIT, false},
    [TR_STEP_track] = {TR_STEP_IS_LAUNCH, UNIT, false},
    [TR_STEP_gauge] = {TR_STEP_IS_LAUNCH, UNIT, true},
    [TR_STEP_gauge_tied] = {TR_STEP_IS_LAUNCH, FLAT, false},
    [TR_STEP_fold] = {TR_STEP_IS_LAUNCH, FLAT, true},
    [TR_STEP_square] = {TR_STEP_IS_LAUNCH, FLAT, false},
    [TR_STEP_clear] = {TR_STEP_IS_LAUNCH, FLAT, false},
    [TR_STEP_norm] = {TR_STEP_IS_LAUNCH, NOBODY, false},
    [TR_STEP_measure] = {TR_STEP_IS_LAUNCH, FLAT, false},
    [TR_STEP_total] = {TR_STEP_IS_LAUNCH, NOBODY, false},
    [TR_STEP_update] = {TR_STEP_IS_LAUNCH, FLAT, false},
    [TR_STEP_gather] = {TR_STEP_IS_EXCHANGE, FLAT, false},
    [TR_STEP_reduce] = {TR_STEP_IS_EXCHANGE, FLAT, false},
    [TR_STEP_fetch] = {TR_STEP_IS_COPY, FLAT, false},
    [TR_STEP_evict] = {TR_STEP_IS_COPY, FLAT, false},
    [TR_STEP_read] = {TR_STEP_IS_FILE, FLAT, false},
    [TR_STEP_write] = {TR_STEP_IS_FILE, FLAT, false},
};

tr_step_shape tr__step_shape(const tr_plan_step *step) {
    return of_kind[step->kind].shape;
}

bool tr__step_is_of_boundary(const tr_plan_step *step) {
    return tr__step_shape(step) == TR_STEP_IS_COPY && step->part == TR_PART_BOUNDARY;
}

static subject subject_of(const tr_plan_step *step) {
    bool whole = step->part == TR_PART_RECORD || step->part == TR_PART_NORMS;
    bool may_be = step->kind == TR_STEP_gather || step->kind == TR_STEP_clear;
    return tr__step_is_of_boundary(step) ? UNIT
           : may_be && whole             ? NOBODY
                                         : of_kind[step->kind].subject;
}

bool tr__step_is_of_unit(const tr_plan_step *step) {
    return step->kind == TR_STEP_forward || step->kind == TR_STEP_combine ||
           step->kind == TR_STEP_recompute || step->kind == TR_STEP_backward;
}

bool tr__step_is_of_flat(const tr_plan_step *step) {
    return subject_of(step) == FLAT;
}

bool tr__step_is_of_micro_batch(const tr_plan_step *step) {
    return of_kind[step->kind].of_micro_batch || tr__step_is_of_boundary(step);
}

const char *tr__step_subject(const tr_plan *plan, const tr_plan_step *step) {
    switch (subject_of(step)) {
    case FLAT:
        return plan->flats[step->unit].name;
    case UNIT:
        return plan->request.model->units[step->unit].name;
    default:
        return NULL;
    }
}

// Where ranks sum whole steps, what is evicted is the sum.
bool tr__plan_grads_pass(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    return tr__plan_stage(plan) >= 2 ||
           (r->ranks == 1 && r->optimizer_home != TR_SPACE_DEVICE);
}

bool tr__flat_has_gaps(const tr_plan *plan, int flat) {
    const tr_flat *of = &plan->flats[flat];
    int64_t count = 0;
    for (size_t i = of->first_param; i < of->end_param; i++) {
        count += plan->params[i].flat == flat ? plan->params[i].count : 0;
    }
    return count < plan->flats[flat].count;
}

bool tr__flat_grads_pass(const tr_plan *plan, int flat) {
    return tr__plan_stage(plan) >= 2 ||
           (plan->request.ranks == 1 && plan->flats[flat].leaves);
}

int64_t tr__plan_staying(const tr_plan *plan) {
    int64_t count = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        count += plan->flats[f].leaves ? 0 : plan->flats[f].count;
    }
    return count;
}

int64_t tr__update_shard(const tr_plan *plan, const tr_flat *flat) {
    return tr__plan_stage(plan) > 0 ? flat->shard : flat->count;
}

int64_t tr__norms_ranks(const tr_plan *plan) {
    return tr__plan_stage(plan) > 0 ? plan->request.ranks : 1;
}

int64_t tr__norms_parts(const tr_plan *plan, const tr_flat *flat) {
    int64_t most = tr__min_i64(tr__update_shard(plan, flat), flat->count);
    return tr__ceil_div(most, TR_SHARD_ELEMENTS) + flat->param_count;
}

int64_t tr__norms_part(const tr_plan *plan, const tr_plan_param *param, int64_t block) {
    const tr_flat *flat = &plan->flats[param->flat];
    int64_t shard = tr__update_shard(plan, flat);
    int64_t rank = block * TR_SHARD_ELEMENTS / shard;
    int64_t within = block - rank * shard / TR_SHARD_ELEMENTS;
    return rank * plan->norms.parts + flat->parts + within + param->place;
}

int tr__plan_stage(const tr_plan *plan) {
    return plan->request.ranks > 1 ? plan->request.stage : 0;
}

int64_t tr__param_bytes(const tr_plan *plan) {
    return (int64_t)tr_dtype_bytes(plan->request.compute);
}

bool tr__plan_is_half(const tr_plan *plan) {
    return plan->request.compute != TR_F32;
}

bool tr__plan_folds(const tr_plan *plan) {
    return plan->request.sums != TR_F32;
}

int64_t tr__sum_bytes(const tr_plan *plan) {
    return (int64_t)tr_dtype_bytes(plan->request.sums);
}

int64_t tr__sums_bytes(const tr_plan *plan, int64_t count) {
    return tr__round_up(count * tr__sum_bytes(plan), TR_ALIGNMENT);
}

int64_t tr__gradient_scope(const tr_plan *plan, int flat, int unit, int64_t wave) {
    if (!tr__flat_grads_pass(plan, flat)) {
        return 0;
    }
    return plan->flats[flat].slice ? wave * plan->unit_count + unit : wave;
}

const tr_program *tr__step_program(const tr_plan *plan, const tr_plan_step *step,
                                   tr_sequence_kind sequence) {
    const tr_unit_program *unit = NULL;
    if (step->kind == TR_STEP_forward || step->kind == TR_STEP_backward ||
        step->kind == TR_STEP_recompute || step->kind == TR_STEP_track) {
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
    case TR_STEP_track:
        return &unit->track;
    default:
        return NULL;
    }
}
