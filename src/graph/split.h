// Splits the nodes of a unit over the ranks of the mesh's tensor axis, by the ways that
// their ops have for it (tr_op.split).
#ifndef TR_GRAPH_SPLIT_H
#define TR_GRAPH_SPLIT_H

#include "graph/rewrite.h"

// Of the graph of a unit before its backward is derived: makes it that of rank
// walk->rank of walk->ranks. Runs of nodes are split that begin with a cut of a
// parameter and end with a sum over ranks, so that what lies between runs is whole on
// each rank; all other nodes stay as they are. With walk->tokens (sequence parallelism)
// what lies between runs is cut along the tokens, where the nodes there have a way for
// that (tr_cut.tokens), and so is what the unit hands on; runs and all other nodes
// gather before they begin. graph->input_cut says which inputs are cut so; those have
// the shape of the whole, and get that of the part here. `tied`: tensors that several
// units use may be cut, and losses shared. The error is the graph's.
tr_status tr__graph_split(tr_graph *graph, const tr_rewrite_walk *walk, bool tied,
                          tr_error *err);

#endif
