// Which parameters are kept apart, because the optimizer keeps other states of them.
#ifndef TR_PLAN_UNITS_APART_H
#define TR_PLAN_UNITS_APART_H

#include "graph/graph.h"

#include <tranche/extend/plan.h>
#include <tranche/model.h>

// Elements that share a scale in the states of most parameters; 1: none do.
int64_t tr__states_block(const tr_plan_request *request);
// Is parameter `index` of the unit's graph apart, if it is trained?
bool tr__is_apart(const tr_plan_request *request, const tr_model_unit *unit,
                  const tr_graph *graph, size_t index);
// Marks the parameters of a unit's graph that are, once the frozen ones are marked.
// Those of which ranks have parts are marked before they are cut, so that no mesh
// changes what is apart; then only the frozen ones among them lose their mark.
void tr__apart_graph(const tr_plan_request *request, const tr_model_unit *unit,
                     tr_graph *graph);
// Where ranks have parts of a tensor, the elements that share a scale in its states are
// all one rank's. TR_USAGE names one of which they are not.
tr_status tr__apart_check_parts(const tr_plan_request *request, const char *unit,
                                const tr_graph *graph, tr_error *err);
// Are the same parameters of the unit apart as of the graph, which is one of its kind?
bool tr__apart_alike(const tr_plan_request *request, const tr_model_unit *unit,
                     const tr_graph *graph);
// Of a flat buffer of those of a unit, for people: what it has behind the unit's name.
const char *tr__apart_name(tr_apart apart);

#endif
