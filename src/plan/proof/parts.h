// How each rank of the tensor axis has the values of a unit that these ranks share.
#ifndef TR_PLAN_PROOF_PARTS_H
#define TR_PLAN_PROOF_PARTS_H

#include "plan/flow/plan.h"

typedef enum tr_part_form {
    TR_SHARE_WHOLE,
    TR_SHARE_TOKENS,
    TR_SHARE_PART,     // of a sum
    TR_SHARE_REDUCED,  // the rank's tokens of it are the sum, the rest means nothing
    TR_SHARE_MEASURED, // the largest value of the rank's part of a tensor
    TR_SHARE_OTHERWISE,
    TR_SHARE_WRONG,
} tr_part_form;

typedef struct tr_shares {
    const tr_plan *plan;
    const tr_unit_program *unit;
    const tr_graph *graph;
    tr_part_form *of; // [values]
} tr_shares;

// The parameter, of which each rank has a part; NULL: the value is none, or whole.
static inline const tr_param_info *tr__share_param(const tr_shares *w, tr_value value) {
    const tr_value_info *info = &w->graph->values[value];
    bool param = info->kind == TR_VALUE_PARAM && w->graph->params[info->index].split;
    return param ? &w->graph->params[info->index] : NULL;
}

// Products of 8 bits, in the evaluation or in all other programs: is each factor of
// which a rank has a part rounded by the scale of the whole tensor?
tr_status tr__check_scales(const tr_shares *w, bool evaluates, tr_error *err);

#endif
