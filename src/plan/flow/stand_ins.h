// Which value stands in for another one, as a pass goes through a sequence: parameters
// that were gathered for these steps, the gradients of this wave, an input that has
// come back. Steps name the value that a pass before meant; from a renewal on they get
// a new one of the same kind in its place.
#ifndef TR_PLAN_FLOW_STAND_INS_H
#define TR_PLAN_FLOW_STAND_INS_H

#include "plan/flow/plan.h"

typedef struct tr_stand_ins {
    tr_plan *plan;
    int32_t *of; // [count] by value; -1: one is to be made
    size_t count, capacity;
    tr_error *err;
    tr_status status; // TR_MEMORY: after that nothing stands in for anything
} tr_stand_ins;

// What stands in for the value now: itself at first. A renewed one is made here. -1 for
// -1, or without memory.
int32_t tr__stand_in(tr_stand_ins *now, int32_t value);
// From here on another one stands in for it.
void tr__stand_in_renew(tr_stand_ins *now, int32_t value);
// The operands of a step name what stands in for their values.
void tr__stand_in_step(tr_stand_ins *now, const tr_plan_step *step);
void tr__stand_ins_clear(tr_stand_ins *now);

#endif
