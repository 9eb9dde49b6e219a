// What the flat buffers of a unit's own parameters are, as rows of a table.
#ifndef TR_PLAN_UNITS_OWN_H
#define TR_PLAN_UNITS_OWN_H

#include "graph/graph.h"
#include "plan/units/program.h"

typedef struct tr_own_row {
    const char *name; // behind the unit's; NULL: "" or what is apart
    bool frozen, quantized, apart, split, repeated, summed;
} tr_own_row;

extern const tr_own_row tr__own_rows[TR_OWN];

// In which of them the parameter, no tied one, lies.
tr_own tr__own_of(const tr_param_info *param);
// Its name: "h.1 (split)", "h.1 (split, states in f32)". The caller frees it; NULL: no
// memory.
char *tr__own_name(const tr_plan_request *request, const char *unit, tr_own own);

#endif
