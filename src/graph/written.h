// What a row has written in a node's place becomes part of the graph: the node's
// outputs keep their values, and what is new comes behind the values that were there.
#ifndef TR_GRAPH_WRITTEN_H
#define TR_GRAPH_WRITTEN_H

#include "graph/graph.h"

typedef struct tr_written {
    tr_graph *graph;
    const tr_call *node;             // that is replaced
    tr_value results[TR_OP_OUT_MAX]; // the row's
    // Where the graph ended before: what lies behind is the row's.
    size_t values, nodes, params, states;
} tr_written;

void tr__written_begin(tr_written *written, tr_graph *graph, const tr_call *node);
// Has the row left the graph as it was? Else that is the graph's error.
bool tr__written_nothing(const tr_written *written);
// Takes over nodes and results, or fails the graph.
void tr__written_settle(tr_written *written);
// Is all that nodes read, and the unit hands on, made before? Else the graph fails.
void tr__written_check(tr_graph *graph);

#endif
