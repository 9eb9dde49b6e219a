// What the backward recomputes, so that the forward need not keep it.
#ifndef TR_GRAPH_RECOMPUTE_H
#define TR_GRAPH_RECOMPUTE_H

#include "graph/graph.h"

// A node as its op's rules see it.
typedef struct tr_node_view {
    tr_op_node node;
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
} tr_node_view;

void tr__node_view(const tr_graph *graph, const tr_call *node, tr_node_view *view);

// The classes that a value belongs to (bits of tr_recompute_class); TR_RECOMPUTE_NEVER
// where it has to be kept, or is there anyway.
uint32_t tr__recompute_classes(const tr_graph *graph, tr_value value);

// Chooses which values of `classes` are dropped, so that less is kept: of those the
// backward reads (`read`), and of those that others are made from. A value stays where
// to recompute it would need other tensors of at least its own size to be kept.
// read, dropped: [values], those of the forward. false: no memory.
bool tr__recompute_choose(const tr_graph *graph, size_t values, const bool *read,
                          uint32_t classes, bool *dropped);

// The op's own rule that gives the value; false: it has none.
bool tr__recompute_rule(const tr_graph *graph, tr_value value, tr_call *call);
// The call that makes a dropped value again: the op's own rule where what that reads is
// not dropped itself, else the node once more. Results that are not dropped are left
// out.
void tr__recompute_call(const tr_graph *graph, const bool *dropped, tr_value value,
                        tr_call *call);

#endif
