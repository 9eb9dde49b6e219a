// Which parameters are trained.
#ifndef TR_PLAN_UNITS_FREEZE_H
#define TR_PLAN_UNITS_FREEZE_H

#include "graph/graph.h"

#include <tranche/extend/plan.h>
#include <tranche/model.h>

// Do the request's patterns match the name, as files have it?
bool tr__matches_frozen(const tr_plan_request *request, const char *stored);
// The same where something is trained: inference has nothing to freeze.
bool tr__is_frozen(const tr_plan_request *request, const char *stored);
// The same of a unit's own parameter, by its local name.
bool tr__matches_own(const tr_plan_request *request, const tr_model_unit *unit,
                     const char *name);
// Marks the frozen parameters of a unit's graph. TR_USAGE: the plan has parameters as
// rows of one tensor, of which only some are frozen.
tr_status tr__freeze_graph(const tr_plan_request *request, const tr_model_unit *unit,
                           tr_graph *graph, tr_error *err);
// Does the unit freeze what the graph, which is one of its kind, freezes?
bool tr__freezes_alike(const tr_plan_request *request, const tr_model_unit *unit,
                       const tr_graph *graph);

#endif
