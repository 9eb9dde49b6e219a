// Can ranks of the tensor axis share out the heads of a unit's attention?
#ifndef TR_PLAN_UNITS_HEADS_H
#define TR_PLAN_UNITS_HEADS_H

#include "graph/graph.h"

#include <tranche/extend/plan.h>

// Of attention with fewer heads of keys than of queries. TR_USAGE: they cannot; it
// says which numbers of ranks could.
tr_status tr__check_heads(const tr_plan_request *request, const tr_graph *graph,
                          const char *unit, tr_error *err);

#endif
