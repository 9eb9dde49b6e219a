// Ranks that share the work of a node, where the sum over them stands between nodes.
#include "graph/rewrite.h"
#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"
#include "ops/nn/softmax_parts/softmax_parts.h"

enum { X, WEIGHT, BIAS, TARGETS }; // of the head

// The head: its classes are a slice on each rank, without one before it. Attributes are
// the slice's.
static bool share_classes(tr_graph *graph, const tr_rewrite_node *node,
                          tr_value *results) {
    const tr_softmax_part_attr place = {.ranks = node->ranks, .rank = node->rank};
    tr_value folded[TR_OP_OUT_MAX], joined[TR_OP_OUT_MAX];
    tr_graph_op(graph, &tr__op_linear_cross_entropy_slice, node->attr,
                (tr_value[]){node->in[X], node->in[WEIGHT], node->in[BIAS],
                             node->in[TARGETS], TR_NO_VALUE, TR_NO_VALUE},
                6, folded);
    tr_value part = tr_graph_op(graph, &tr__op_softmax_part, &place, folded, 2, NULL);
    tr_value parts = tr_graph_sum_over_ranks(graph, part);
    tr_graph_op(graph, &tr__op_softmax_join, NULL, &parts, 1, joined);
    results[0] =
        tr_graph_op(graph, &tr__op_linear_cross_entropy_slice_loss, NULL,
                    (tr_value[]){joined[0], joined[1], node->in[TARGETS]}, 3, NULL);
    return true;
}

const tr_rewrite tr__rewrites_split[] = {
    {TR_REWRITE_SPLIT, &tr__op_linear_cross_entropy, NULL, share_classes},
    {0},
};
