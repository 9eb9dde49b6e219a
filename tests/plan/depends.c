#include "plan/depends.h"

static bool writes(const tr_plan_step *step, int slot) {
    if (slot == TR_SLOT_PACKED || slot == TR_SLOT_PACKED_BACKWARD) {
        return step->writes & tr__slot_bit((tr_slot)slot);
    }
    switch (step->kind) {
    case TR_STEP_forward:
        return slot == TR_SLOT_OUTPUT || slot == TR_SLOT_SAVED ||
               (slot == TR_SLOT_WAVE && step->segment == 0 &&
                step->writes & tr__slot_bit(TR_SLOT_WAVE));
    case TR_STEP_recompute:
        return slot == TR_SLOT_SAVED;
    case TR_STEP_backward:
        return slot == TR_SLOT_INPUT_GRAD || slot == TR_SLOT_OUTPUT_GRAD ||
               (slot == TR_SLOT_WAVE_GRAD && step->segment == 1 &&
                step->writes & tr__slot_bit(TR_SLOT_WAVE_GRAD));
    default:
        return false;
    }
}

bool test_is_compute(const tr_plan_step *step) {
    return step->kind == TR_STEP_forward || step->kind == TR_STEP_recompute ||
           step->kind == TR_STEP_backward;
}

static bool is_gather(const tr_plan_step *step, tr_part part) {
    return step->kind == TR_STEP_gather && step->part == part;
}

// On the way to the update.
static bool is_next_phase(const tr_plan_step *step, const tr_plan_step *later) {
    bool changes =
        later->kind == TR_STEP_direction_norms || later->kind == TR_STEP_update;
    if (step->kind == TR_STEP_norm || step->kind == TR_STEP_report ||
        is_gather(step, TR_PART_STATISTICS)) {
        return changes || later->kind == TR_STEP_decide;
    }
    if (step->kind == TR_STEP_decide) {
        return changes || later->kind == TR_STEP_track;
    }
    if (step->kind == TR_STEP_direction_norms) {
        return is_gather(later, TR_PART_NORMS) || later->kind == TR_STEP_tensor_norms;
    }
    return (is_gather(step, TR_PART_NORMS) && later->kind == TR_STEP_tensor_norms) ||
           (step->kind == TR_STEP_tensor_norms && later->kind == TR_STEP_update);
}

bool test_is_idle(const tr_plan *plan, const tr_plan_step *step) {
    bool none =
        step->kind == TR_STEP_direction_norms && plan->flats[step->unit].count == 0;
    return none || (step->kind == TR_STEP_norm && step->payload.op_count == 0);
}

bool test_is_ring(const tr_plan_step *step) {
    return step->kind == TR_STEP_load || step->kind == TR_STEP_unload;
}

// Where both write wave tensors, each micro-batch has a part of its own.
static bool is_apart(const tr_plan_step *step, const tr_plan_step *later, int slot) {
    bool wave = slot == TR_SLOT_WAVE || slot == TR_SLOT_WAVE_GRAD;
    return wave && writes(step, slot) && writes(later, slot) &&
           step->micro != later->micro;
}

bool test_depends(const tr_plan_step *step, const tr_plan_step *later) {
    for (int a = 0; a < TR_SLOTS; a++) {
        for (int b = 0; b < TR_SLOTS; b++) {
            bool same = step->buffer[a] >= 0 && step->buffer[a] == later->buffer[b];
            if (same && !is_apart(step, later, a) &&
                (writes(step, a) || writes(later, b))) {
                return true;
            }
        }
    }
    bool data = step->micro == later->micro &&
                ((step->kind == TR_STEP_load && test_is_compute(later)) ||
                 (test_is_compute(step) && later->kind == TR_STEP_unload));
    bool same_ring = test_is_ring(step) && step->kind == later->kind;
    bool merges = (tr__step_is_of_wave(step) || tr__step_is_of_wave(later)) &&
                  step->unit == later->unit &&
                  (test_is_compute(step) || test_is_compute(later));
    bool sums = (step->kind == TR_STEP_clear && step->part == TR_PART_STATISTICS) ||
                later->kind == TR_STEP_norm || is_next_phase(step, later);
    return data || same_ring || merges || sums;
}

static bool names(const tr_plan *plan, const tr_plan_step *step, int buffer) {
    bool found = false;
    for (int slot = 0; slot < TR_SLOTS; slot++) {
        found = found || step->buffer[slot] == buffer;
    }
    for (int f = 0; f < TR_UNIT_FLATS_MAX && step->binding >= 0; f++) {
        const tr_binding *binding = &plan->bindings[step->binding];
        found = found || binding->param[f] == buffer || binding->grad[f] == buffer;
    }
    return found;
}

// Has somebody waited for step `before` when step `after` begins?
static bool is_waited_for(const tr_plan *plan, const tr_sequence *sequence,
                          size_t before, size_t after) {
    tr_stream stream = sequence->steps[before].stream;
    int32_t number = 0, waited = 0;
    if (!tr__plan_is_beside(plan, stream) || stream == sequence->steps[after].stream) {
        return true;
    }
    for (size_t i = 0; i <= before; i++) {
        number += sequence->steps[i].stream == stream;
    }
    for (size_t i = 0; i <= after; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        bool known = step->stream == sequence->steps[after].stream ||
                     !tr__plan_follows(plan, step->stream, stream);
        waited = known && step->wait[stream] > waited ? step->wait[stream] : waited;
    }
    return waited >= number;
}

static bool is_done_before(const tr_plan *plan, tr_sequence_kind kind, int buffer,
                           int other) {
    const tr_sequence *sequence = &plan->sequences[kind];
    size_t first = 0;
    while (first < sequence->count && !names(plan, &sequence->steps[first], other)) {
        first++;
    }
    for (size_t i = 0; i < sequence->count; i++) {
        if (names(plan, &sequence->steps[i], buffer) &&
            (i >= first || !is_waited_for(plan, sequence, i, first))) {
            return false;
        }
    }
    return true;
}

bool test_never_meet(const tr_plan *plan, int a, int b) {
    tr_sequence_kind kind = (tr_sequence_kind)plan->buffers[a].sequence;
    return plan->buffers[a].sequence >= 0 &&
           plan->buffers[b].sequence == plan->buffers[a].sequence &&
           (is_done_before(plan, kind, a, b) || is_done_before(plan, kind, b, a));
}

uint64_t test_contributions(const tr_program *program) {
    uint64_t operands = 0;
    for (size_t i = 0; program && i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.out_count; k++) {
            operands |= at->first >> k & 1 ? tr__operand_bit(&at->out[k]) : 0;
        }
    }
    return operands;
}

bool test_is_cut(const tr_plan_step *step) {
    return step->kind == TR_STEP_update || step->kind == TR_STEP_read ||
           step->kind == TR_STEP_write || step->kind == TR_STEP_direction_norms;
}

static bool names_in_slot(const tr_plan_step *step, int32_t buffer) {
    bool found = false;
    for (int slot = 0; slot < TR_SLOTS; slot++) {
        found = found || (buffer >= 0 && step->buffer[slot] == buffer);
    }
    return found;
}

int32_t test_needed(const tr_sequence *sequence, size_t i, tr_stream stream) {
    int32_t number = 0, last = 0;
    for (size_t k = 0; k < i; k++) {
        const tr_plan_step *step = &sequence->steps[k];
        number += step->stream == stream;
        for (int slot = 0; step->stream == stream && slot < TR_SLOTS; slot++) {
            last =
                names_in_slot(&sequence->steps[i], step->buffer[slot]) ? number : last;
        }
    }
    return last;
}
