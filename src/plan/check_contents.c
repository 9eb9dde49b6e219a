#include "plan/check_walk.h"

#include <stdarg.h>
#include <stdio.h>

tr_status tr__check_wrong(const tr_check_walk *w, const char *format, ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const tr_sequence *sequence = &w->plan->sequences[w->kind];
    return tr_fail(w->err, TR_INTERNAL,
                   "plan: %s step %zu (%s, unit %d, segment %d, micro-batch %lld) %s",
                   tr__sequence_name(w->kind), (size_t)(w->step - sequence->steps),
                   tr__plan_step_name(w->step->kind), (int)w->step->unit,
                   (int)w->step->segment, (long long)w->step->micro, what);
}

const tr_unit_program *tr__check_unit(const tr_check_walk *w) {
    return w->plan->units[w->step->unit].program;
}

int64_t tr__check_wave(const tr_check_walk *w) {
    int64_t wave = w->kind == TR_SEQUENCE_TRAIN ? w->plan->request.wave : 1;
    return w->step->micro / wave * wave;
}

int64_t tr__check_wave_tensors(const tr_check_walk *w) {
    return tr__wave_is_step(tr__check_unit(w)) ? 0 : tr__check_wave(w);
}

// ---- what programs touch
// -----------------------------------------------------------------

static uint32_t places_of(const tr_program *program) {
    uint32_t places = program->temp_bytes > 0 ? 1u << TR_PLACE_TEMP : 0;
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.in_count; k++) {
            places |= 1u << at->in[k].place;
        }
        for (int k = 0; k < at->desc.out_count; k++) {
            places |= 1u << at->out[k].place;
        }
    }
    return places;
}

// One buffer is in two slots where a gradient is handed on in place, and only there.
static tr_status check_distinct(const tr_check_walk *w) {
    const tr_plan_step *step = w->step;
    if (step->kind == TR_STEP_backward && tr__check_unit(w)->derived.in_place &&
        step->buffer[TR_SLOT_INPUT_GRAD] != step->buffer[TR_SLOT_OUTPUT_GRAD]) {
        return tr__check_wrong(w, "hands a gradient on in place, in two buffers");
    }
    for (int a = 0; a < TR_SLOTS; a++) {
        for (int b = a + 1; b < TR_SLOTS; b++) {
            bool in_place = a == TR_SLOT_INPUT_GRAD && b == TR_SLOT_OUTPUT_GRAD &&
                            step->kind == TR_STEP_backward &&
                            tr__check_unit(w)->derived.in_place;
            if (step->buffer[a] >= 0 && step->buffer[a] == step->buffer[b] &&
                !in_place) {
                return tr__check_wrong(w, "names buffer %d twice", step->buffer[a]);
            }
        }
    }
    return TR_OK;
}

static int64_t needs(const tr_check_walk *w, const tr_program *program, int slot) {
    const tr_unit_program *unit = tr__check_unit(w);
    switch (slot) {
    case TR_SLOT_INPUT:
    case TR_SLOT_INPUT_GRAD:
        return unit->input_bytes;
    case TR_SLOT_OUTPUT:
    case TR_SLOT_OUTPUT_GRAD:
        return unit->output_bytes;
    case TR_SLOT_SAVED:
        return unit->saved_bytes;
    case TR_SLOT_TEMP:
        return program->temp_bytes;
    default:
        return unit->wave_bytes * tr__wave_parts(w->plan, w->kind);
    }
}

tr_status tr__check_slots(const tr_check_walk *w, const tr_program *program) {
    tr_status status = check_distinct(w);
    uint32_t touched = program ? places_of(program) : 0;
    for (int place = 0; place < TR_PLACE_COUNT && program; place++) {
        tr_slot slot = tr__place_slot((tr_place)place);
        int buffer = slot < TR_SLOTS ? w->step->buffer[slot] : -1;
        if (slot < TR_SLOTS && buffer < 0 && (touched >> place & 1)) {
            return tr__check_wrong(
                w, "names no buffer for what its program touches (slot %d)", slot);
        }
        if (buffer >= 0 && w->plan->buffers[buffer].space != TR_SPACE_DEVICE) {
            return tr__check_wrong(w, "computes on buffer %d, which is elsewhere",
                                   buffer);
        }
        if (buffer >= 0 && w->plan->buffers[buffer].bytes < needs(w, program, slot)) {
            return tr__check_wrong(w, "names buffer %d, which is too small", buffer);
        }
    }
    return status;
}

// ---- contents
// ----------------------------------------------------------------------------

tr_status tr__check_expect(const tr_check_walk *w, tr_slot slot, tr_content want) {
    int buffer = w->step->buffer[slot];
    if (buffer < 0) {
        return TR_OK; // check_slots has seen that nothing is read there
    }
    tr_content is = w->contents[buffer];
    bool same = is.kind == want.kind && is.unit == want.unit && is.micro == want.micro;
    if (same && (is.whole || !want.whole)) {
        return TR_OK;
    }
    return tr__check_wrong(w, "reads buffer %d before what it needs is there", buffer);
}

void tr__check_leave(const tr_check_walk *w, tr_slot slot, tr_content what) {
    if (w->step->buffer[slot] >= 0) {
        w->contents[w->step->buffer[slot]] = what;
    }
}

// A block that the segments of a unit fill one after the other.
tr_status tr__check_fill(const tr_check_walk *w, tr_slot slot, tr_content what,
                         bool first, bool last) {
    tr_status status = TR_OK;
    what.whole = false;
    if (!first) {
        status = tr__check_expect(w, slot, what);
    }
    what.whole = last;
    tr__check_leave(w, slot, what);
    return status;
}

tr_status tr__check_fill_wave(const tr_check_walk *w, tr_slot slot,
                              tr_content_kind kind, bool begins) {
    tr_content what = {.kind = kind,
                       .unit = w->step->unit,
                       .micro = tr__check_wave_tensors(w),
                       .whole = true};
    if (begins) {
        tr__check_leave(w, slot, what);
    }
    return tr__check_expect(w, slot, what);
}
