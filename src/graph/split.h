// Splits the nodes of a unit over the ranks of the mesh's tensor axis, by the ways that
// their ops have for it (tr_op.split).
#ifndef TR_GRAPH_SPLIT_H
#define TR_GRAPH_SPLIT_H

#include "graph/graph.h"

// Of the graph of a unit before its backward is derived: makes it that of rank `rank`
// of `ranks`. Runs of nodes are split that begin with a cut of a parameter and end with
// a sum over ranks, so that what lies between runs is whole on each rank; all other
// nodes stay as they are. `axes`: those whose ranks sum (tr_all_reduce). The error is
// the graph's.
tr_status tr__graph_split(tr_graph *graph, int64_t ranks, int64_t rank, uint32_t axes,
                          tr_error *err);

#endif
