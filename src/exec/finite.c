// What was the first that was not finite: fp16's range is small, and who lowers it must
// know where.
#include "base/checked.h"
#include "exec/walk.h"

#include <stdio.h>

// Is one of them infinite or not a number? x: [count] f16, or the other 16-bit format,
// whose exponent has the bits of `exponent`.
static bool is_bad(const uint16_t *x, int64_t count, uint16_t exponent) {
    enum { RUN = 4096 };
    for (int64_t first = 0; first < count; first += RUN) {
        int64_t end = tr__min_i64(first + RUN, count);
        int bad = 0;
        for (int64_t i = first; i < end; i++) {
            bad |= (x[i] & exponent) == exponent;
        }
        if (bad) {
            return true;
        }
    }
    return false;
}

// A number for the record: 0 for nothing, else the earlier the smaller.
static double code_of(const tr_work *work, const tr_plan_step *step) {
    const tr_plan_request *r = &work->ex->plan->request;
    int64_t units = work->ex->plan->unit_count;
    int64_t micro = r->rank * r->accumulation_steps + step->micro;
    bool backward = step->kind == TR_STEP_backward;
    int64_t place = backward ? 2 * units - 1 - step->unit : step->unit;
    return (double)(1 + micro * 2 * units + place);
}

void tr__note_finite(tr_work *work, const tr_plan_step *step) {
    const tr_plan *plan = work->ex->plan;
    const tr_unit_program *unit = plan->units[step->unit].program;
    bool backward = step->kind == TR_STEP_backward;
    int slot = step->buffer[backward ? TR_SLOT_INPUT_GRAD : TR_SLOT_OUTPUT];
    int64_t bytes = backward ? unit->input_bytes : unit->output_bytes;
    bool last = step->segment == (backward ? 0 : unit->segments - 1);
    if (plan->request.compute != TR_F16 || work->sequence != TR_SEQUENCE_TRAIN ||
        slot < 0 || !last || step->kind == TR_STEP_recompute) {
        return;
    }
    double *first = &tr__own_record(work->ex)[TR_RECORD_FIRST_BAD];
    double code = code_of(work, step);
    if ((*first == 0 || code < *first) &&
        is_bad(tr__memory(work->ex, slot), bytes / (int64_t)sizeof(uint16_t), 0x7C00)) {
        *first = code;
    }
}

void tr__executor_blame(const tr_executor *executor, double first, char *dst,
                        size_t bytes) {
    const tr_plan *plan = executor->plan;
    int64_t units = plan->unit_count, code = (int64_t)first - 1;
    if (code < 0) {
        snprintf(dst, bytes, "%s", "");
        return;
    }
    int64_t micro = code / (2 * units), place = code % (2 * units);
    bool backward = place >= units;
    const char *unit =
        plan->request.model->units[backward ? 2 * units - 1 - place : place].name;
    snprintf(
        dst, bytes, "first in micro-batch %lld of the step, %s %s", (long long)micro,
        backward ? "the gradient of what is given to" : "what is handed on by", unit);
}
