#include "micro_norms.h"

bool test_is_micro_norm(const tr_plan_step *step) {
    return step->label.verb == TR_VERB_micro_norm ||
           step->label.verb == TR_VERB_micro_norm_tied;
}

bool test_adds_to_micro_norm(const tr_plan *plan, const tr_plan_step *at,
                             const tr_plan_step *micro_norm) {
    const tr_plan_unit *unit = &plan->units[at->unit];
    if (at->label.verb != TR_VERB_backward ||
        micro_norm->label.verb == TR_VERB_micro_norm) {
        return at->label.verb == TR_VERB_backward && at->unit == micro_norm->unit &&
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
    int flat = micro_norm->label.verb == TR_VERB_micro_norm
                   ? plan->units[micro_norm->unit].flats[0]
                   : micro_norm->unit;
    return at->subject == TR_OF_FLAT && at->unit == flat &&
           (at->label.verb == TR_VERB_accumulate || at->label.verb == TR_VERB_reduce ||
            at->label.verb == TR_VERB_evict);
}
