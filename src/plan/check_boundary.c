// The part of the walk that follows the inputs of recomputed units to another space and
// back.
#include "plan/check_walk.h"

static bool lies_in(const tr_check_walk *w, int32_t buffer, tr_space space) {
    return buffer >= 0 && w->plan->buffers[buffer].space == space &&
           w->plan->buffers[buffer].bytes >= tr__check_unit(w)->input_bytes;
}

tr_status tr__check_boundary(tr_check_walk *w) {
    const tr_plan_step *step = w->step;
    tr_space home = w->plan->request.boundary_home;
    bool leaves = step->kind == TR_STEP_evict;
    int32_t from = step->buffer[TR_SLOT_INPUT], to = step->buffer[TR_SLOT_OUTPUT];
    tr_content input = {.kind = TR_HOLDS_BOUNDARY,
                        .unit = step->unit,
                        .micro = step->micro,
                        .whole = true};
    if (w->kind != TR_SEQUENCE_TRAIN || home == TR_SPACE_DEVICE || step->writes ||
        !lies_in(w, from, leaves ? TR_SPACE_DEVICE : home) ||
        !lies_in(w, to, leaves ? home : TR_SPACE_DEVICE)) {
        return tr__check_wrong(w, "moves what should stay, or to the wrong place");
    }
    tr_status status = tr__check_expect(w, TR_SLOT_INPUT, input);
    if (status == TR_OK) { // it is in one place at a time
        w->contents[from].kind = TR_HOLDS_NOTHING;
        tr__check_leave(w, TR_SLOT_OUTPUT, input);
        status = tr__check_begin(w, TR_STREAM_COPY, from, to);
    }
    return status;
}
