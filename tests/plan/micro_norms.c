#include "micro_norms.h"

bool test_is_micro_norm(const tr_plan_step *step) {
    return step->kind == TR_STEP_micro_norm || step->kind == TR_STEP_micro_norm_tied;
}

bool test_adds_to_micro_norm(const tr_plan *plan, const tr_plan_step *at,
                             const tr_plan_step *micro_norm) {
    const tr_plan_unit *unit = &plan->units[at->unit];
    if (at->kind != TR_STEP_backward || micro_norm->kind == TR_STEP_micro_norm) {
        return at->kind == TR_STEP_backward && at->unit == micro_norm->unit &&
               at->segment == micro_norm->segment;
    }
    uint32_t made = tr__program_flats(
        tr__unit_piece(unit->program, TR_VARIANT_BACKWARD, at->segment),
        TR_PLACE_PARAM_GRAD);
    for (int f = 0; f < unit->program->flat_count; f++) {
        if (unit->flats[f] == micro_norm->unit && (made >> f & 1)) {
            return true;
        }
    }
    return false;
}

bool test_takes_micro_norm(const tr_plan *plan, const tr_plan_step *at,
                           const tr_plan_step *micro_norm) {
    int flat = micro_norm->kind == TR_STEP_micro_norm
                   ? plan->units[micro_norm->unit].flats[0]
                   : micro_norm->unit;
    return tr__step_is_of_flat(at) && at->unit == flat &&
           (at->kind == TR_STEP_accumulate || at->kind == TR_STEP_reduce ||
            at->kind == TR_STEP_evict);
}
