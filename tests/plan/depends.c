#include "plan/depends.h"

#include "plan/flow/roles.h"

bool test_is_compute(const tr_plan_step *step) {
    return step->label.verb == TR_VERB_forward ||
           step->label.verb == TR_VERB_recompute ||
           step->label.verb == TR_VERB_backward;
}

static bool is_gather(const tr_plan_step *step, tr_part part) {
    return step->shape == TR_STEP_IS_EXCHANGE &&
           step->payload.exchange.kind == TR_COMM_GATHER &&
           step->payload.exchange.part == part;
}

// On the way to the update.
static bool is_next_phase(const tr_plan_step *step, const tr_plan_step *later) {
    bool changes = later->label.verb == TR_VERB_direction_norms ||
                   later->label.verb == TR_VERB_update;
    if (step->label.verb == TR_VERB_norm || step->label.verb == TR_VERB_report ||
        is_gather(step, TR_PART_STATISTICS)) {
        return changes || later->label.verb == TR_VERB_decide;
    }
    if (step->label.verb == TR_VERB_decide) {
        return changes || later->label.verb == TR_VERB_track;
    }
    if (step->label.verb == TR_VERB_direction_norms) {
        return is_gather(later, TR_PART_NORMS) ||
               later->label.verb == TR_VERB_tensor_norms;
    }
    return (is_gather(step, TR_PART_NORMS) &&
            later->label.verb == TR_VERB_tensor_norms) ||
           (step->label.verb == TR_VERB_tensor_norms &&
            later->label.verb == TR_VERB_update);
}

bool test_is_idle(const tr_plan *plan, const tr_plan_step *step) {
    bool none = step->label.verb == TR_VERB_direction_norms &&
                plan->flats[step->unit].count == 0;
    return none || (step->label.verb == TR_VERB_norm && step->payload.op_count == 0);
}

bool test_is_ring(const tr_plan_step *step) {
    return step->label.verb == TR_VERB_load || step->label.verb == TR_VERB_unload;
}

static bool is_passing(const tr_plan *plan, int32_t buffer) {
    return buffer >= 0 && plan->buffers[buffer].sequence >= 0;
}

// Working memory carries nothing from one step to another, and a step that adds to what
// kernels have packed only reads it.
static bool carries(const tr_plan *plan, const tr_plan_step *step,
                    const tr_access *access) {
    const tr_step_operand *work = tr__step_find(plan, step, TR_OPERAND_TEMP);
    return is_passing(plan, access->value) && !(work && work->buffer == access->value);
}

static bool writes(const tr_plan *plan, const tr_access *access) {
    bool packed = plan->buffers[access->value].category == TR_LEDGER_packed;
    return access->mode == TR_ACCESS_WRITE ||
           (access->mode == TR_ACCESS_ADD && !packed);
}

static bool share(const tr_plan *plan, tr_sequence_kind kind,
                  const tr_accesses *accesses, size_t step, size_t later) {
    const tr_plan_step *steps = plan->sequences[kind].steps;
    for (size_t i = accesses->begin[step]; i < accesses->begin[step + 1]; i++) {
        const tr_access *a = &accesses->items[i];
        for (size_t k = accesses->begin[later]; k < accesses->begin[later + 1]; k++) {
            const tr_access *b = &accesses->items[k];
            bool meet = a->value == b->value && a->first < b->end && b->first < a->end;
            if (meet && (writes(plan, a) || writes(plan, b)) &&
                carries(plan, &steps[step], a) && carries(plan, &steps[later], b)) {
                return true;
            }
        }
    }
    return false;
}

static bool come_in_turn(const tr_plan_step *step, const tr_plan_step *later) {
    bool data = step->micro == later->micro &&
                ((step->label.verb == TR_VERB_load && test_is_compute(later)) ||
                 (test_is_compute(step) && later->label.verb == TR_VERB_unload));
    bool same_ring = test_is_ring(step) && step->label.verb == later->label.verb;
    bool merges = (tr__step_is_of_wave(step) || tr__step_is_of_wave(later)) &&
                  step->unit == later->unit &&
                  (test_is_compute(step) || test_is_compute(later));
    bool sums = step->mark == TR_MARK_BEGIN || later->label.verb == TR_VERB_norm ||
                is_next_phase(step, later);
    return data || same_ring || merges || sums;
}

bool test_depends(const tr_plan *plan, tr_sequence_kind kind,
                  const tr_accesses *accesses, size_t step, size_t later) {
    const tr_plan_step *steps = plan->sequences[kind].steps;
    return come_in_turn(&steps[step], &steps[later]) ||
           share(plan, kind, accesses, step, later);
}

static bool names(const tr_plan *plan, const tr_plan_step *step, int buffer) {
    bool found = false;
    for (size_t i = 0; i < step->payload.operand_count; i++) {
        found = found || tr__step_operand(plan, step, i)->buffer == buffer;
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

bool test_is_cut(const tr_plan_step *step) {
    return step->label.verb == TR_VERB_update || step->label.verb == TR_VERB_read ||
           step->label.verb == TR_VERB_write ||
           step->label.verb == TR_VERB_direction_norms;
}

int32_t test_needed(const tr_plan *plan, const tr_sequence *sequence, size_t i,
                    tr_stream stream) {
    int32_t number = 0, last = 0;
    for (size_t k = 0; k < i; k++) {
        const tr_plan_step *step = &sequence->steps[k];
        number += step->stream == stream;
        for (size_t o = 0; step->stream == stream && o < step->payload.operand_count;
             o++) {
            const tr_step_operand *operand = tr__step_operand(plan, step, o);
            bool found = is_passing(plan, operand->buffer) &&
                         names(plan, &sequence->steps[i], operand->buffer);
            last = found ? number : last;
        }
    }
    return last;
}
