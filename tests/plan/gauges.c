#include "gauges.h"

bool test_is_gauge(const tr_plan_step *step) {
    return step->kind == TR_STEP_gauge || step->kind == TR_STEP_gauge_tied;
}

bool test_adds_to_gauged(const tr_plan *plan, const tr_plan_step *at,
                         const tr_plan_step *gauge) {
    const tr_plan_unit *unit = &plan->units[at->unit];
    if (at->kind != TR_STEP_backward || gauge->kind == TR_STEP_gauge) {
        return at->kind == TR_STEP_backward && at->unit == gauge->unit &&
               at->segment == gauge->segment;
    }
    uint32_t made =
        tr__program_flats(&unit->program->backward[at->segment], TR_PLACE_PARAM_GRAD);
    for (int f = 0; f < unit->program->flat_count; f++) {
        if (unit->flats[f] == gauge->unit && (made >> f & 1)) {
            return true;
        }
    }
    return false;
}

bool test_takes_gauged(const tr_plan *plan, const tr_plan_step *at,
                       const tr_plan_step *gauge) {
    int flat =
        gauge->kind == TR_STEP_gauge ? plan->units[gauge->unit].flats[0] : gauge->unit;
    return tr__step_is_of_flat(at) && at->unit == flat &&
           (at->kind == TR_STEP_fold || at->kind == TR_STEP_reduce ||
            at->kind == TR_STEP_evict);
}
