// What it saves and what it costs to recompute tensors in the backward.
#ifndef TR_PLAN_FLOW_CHOICES_H
#define TR_PLAN_FLOW_CHOICES_H

#include "base/json_writer.h"
#include "plan/flow/plan.h"

// One micro-batch of one unit: `ops` (bits of tr_recompute_class) are recomputed; with
// `units` the whole unit is, where it can be. Fills in what the choice keeps and costs.
tr_status tr__unit_choice(const tr_plan *plan, int unit, uint32_t ops, bool units,
                          tr_recompute_choice *out, tr_error *err);
// tr_plan_recompute_choices for one unit alone.
tr_status tr__unit_choices(const tr_plan *plan, int unit,
                           tr_recompute_choice out[TR_RECOMPUTE_CHOICES_MAX],
                           int *count, tr_error *err);
// The classes of tensors that the unit has.
uint32_t tr__unit_classes(const tr_plan *plan, int unit);
// May the unit be recomputed from its input? What passes from one segment to the next
// is kept in any case, and the last unit is turned around at once.
bool tr__unit_recomputes(const tr_plan *plan, int unit);

// ---- print_choices.c: kind of unit by kind of unit, as text and as a member
// "recompute" of the plan's object.
tr_status tr__choices_print(const tr_plan *plan, FILE *to, tr_error *err);
tr_status tr__choices_write(const tr_plan *plan, tr_json_writer *to, tr_error *err);

#endif
