// Whose work the step of a unit is.
#include "plan/proof/unit.h"

const tr_program *tr__proof_program(const tr_proof *p) {
    return p->step->payload.program;
}

int64_t tr__proof_micros(const tr_proof *p) {
    return tr__plan_micros(p->plan, p->kind);
}

int tr__proof_segments(const tr_proof *p) {
    return p->kind == TR_SEQUENCE_INFERENCE ? 1 : tr__proof_unit(p)->segments;
}

// How many micro-batches have been through the segment of this unit.
int64_t *tr__proof_done(tr_proof *p, int64_t *done, int segment) {
    return &done[p->tables.segments[p->step->unit] + segment];
}

bool tr__unit_is_of_model(tr_proof *p) {
    const tr_plan_step *step = p->step;
    bool inside = tr__plan_runs(p->plan, step->unit) && step->segment >= 0 &&
                  step->segment < tr__proof_segments(p) && step->micro >= 0 &&
                  step->micro < tr__proof_micros(p);
    if (!inside) {
        tr__proof_wrong(p, "is of what the model has not");
    }
    return inside;
}

tr_meaning tr__micro_meaning(const tr_proof *p, tr_meaning_kind kind, int32_t unit,
                             int32_t segments) {
    return (tr_meaning){
        .kind = kind, .of = unit, .index = p->step->micro, .terms = segments};
}

// What the forwards of this sequence are, where they keep what is asked for.
tr_variant tr__proof_forwards(const tr_proof *p) {
    return p->kind == TR_SEQUENCE_INFERENCE  ? TR_VARIANT_INFERENCE
           : p->kind == TR_SEQUENCE_EVALUATE ? TR_VARIANT_EVALUATE
                                             : TR_VARIANT_FORWARD;
}
