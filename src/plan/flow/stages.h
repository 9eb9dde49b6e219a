// Which units the stages of a pipeline run.
#ifndef TR_PLAN_FLOW_STAGES_H
#define TR_PLAN_FLOW_STAGES_H

#include <tranche/status.h>

#include <stdint.h>

// Units [first, end) of the model, which the ranks of one pipeline stage run.
typedef struct tr_unit_range {
    int first, end;
} tr_unit_range;

// Cuts units, of which each takes cost[u], into runs, one for each stage: of all cuts
// whose costliest stage costs least, the one whose stages are most alike (the sum of
// squares is least). first: [stages + 1] where each begins; the last is the end.
// 1 <= stages <= units. TR_MEMORY.
tr_status tr__cut_stages(const double *cost, int units, int stages, int *first,
                         tr_error *err);

#endif
