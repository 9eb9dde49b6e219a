#include "plan/depends.h"

static bool writes(const tr_plan_step *step, int slot) {
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
    bool changes = later->kind == TR_STEP_measure || later->kind == TR_STEP_update;
    if (step->kind == TR_STEP_norm || is_gather(step, TR_PART_RECORD)) {
        return changes;
    }
    if (step->kind == TR_STEP_measure) {
        return is_gather(later, TR_PART_NORMS) || later->kind == TR_STEP_total;
    }
    return (is_gather(step, TR_PART_NORMS) && later->kind == TR_STEP_total) ||
           (step->kind == TR_STEP_total && later->kind == TR_STEP_update);
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
    bool combines = (step->kind == TR_STEP_combine || later->kind == TR_STEP_combine) &&
                    step->unit == later->unit &&
                    (test_is_compute(step) || test_is_compute(later));
    bool sums = (step->kind == TR_STEP_clear && step->part == TR_PART_RECORD) ||
                later->kind == TR_STEP_norm || is_next_phase(step, later);
    return data || same_ring || combines || sums;
}
