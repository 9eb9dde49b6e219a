// Operations as the literature counts those of a model.
#ifndef TR_PLAN_FLOW_MODEL_FLOPS_H
#define TR_PLAN_FLOW_MODEL_FLOPS_H

#include "plan/flow/plan.h"

// Of a training step, from its programs.
tr_model_flops tr__count_model_flops(const tr_plan *plan);

#endif
