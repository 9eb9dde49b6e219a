// Ranks that share the work of a node, where the sum over them stands between nodes.
#include "base/checked.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"
#include "ops/nn/rows/rows.h"
#include "ops/nn/softmax_parts/softmax_parts.h"

#include <string.h>

enum { X, WEIGHT, BIAS, TARGETS }; // of the head

// ---- the head: its classes are a slice on each rank, without one before it

// Of each sample, unless the plan says: smaller parts would be smaller products, and
// more exchanges.
enum { LOGITS_BYTES = 32 << 20 };

typedef struct part {
    tr_value x, targets;
} part;

// Training makes them in the backward alone, right before their gradients: so a part's
// logits are gone before the next one's come, and each product is made once.
static void are_late(tr_graph *graph, const tr_value *values, int count) {
    for (int i = 0; i < count && graph->err.status == TR_OK; i++) {
        graph->values[values[i]].late = true;
    }
}

static part take_part(tr_graph *graph, const tr_rewrite_node *node,
                      const tr_rows_attr *rows) {
    part p = {node->in[X], node->in[TARGETS]};
    if (rows->count < rows->tokens) {
        p.x = tr_graph_op(graph, &tr__op_take_rows, rows, &p.x, 1, NULL);
        p.targets = tr_graph_op(graph, &tr__op_take_rows, rows, &p.targets, 1, NULL);
        are_late(graph, (tr_value[]){p.x, p.targets}, 2);
    }
    return p;
}

// The loss of a part.
static tr_value fold_part(tr_graph *graph, const tr_rewrite_node *node,
                          const tr_lce_slice_attr *slice, const part *p) {
    const tr_softmax_part_attr place = {.ranks = node->ranks, .rank = node->rank};
    tr_value folded[TR_OP_OUT_MAX], joined[TR_OP_OUT_MAX];
    tr_graph_op(graph, &tr__op_linear_cross_entropy_slice, slice,
                (tr_value[]){p->x, node->in[WEIGHT], node->in[BIAS], p->targets,
                             TR_NO_VALUE, TR_NO_VALUE},
                6, folded);
    tr_value own = tr_graph_op(graph, &tr__op_softmax_part, &place, folded, 2, NULL);
    tr_value parts = tr_graph_sum_over_ranks(graph, own);
    tr_graph_op(graph, &tr__op_softmax_join, NULL, &parts, 1, joined);
    are_late(graph, folded, 3);
    are_late(graph, (tr_value[]){own, parts}, 2);
    are_late(graph, joined, 2);
    return tr_graph_op(graph, &tr__op_linear_cross_entropy_slice_loss, NULL,
                       (tr_value[]){joined[0], joined[1], p->targets}, 3, NULL);
}

// A part's logits are kept between their product and their gradients. All ranks have as
// many parts.
static int64_t parts_of(const tr_rewrite_node *node, int64_t classes, int64_t tokens) {
    int64_t bytes = node->logits_bytes > 0 ? node->logits_bytes : LOGITS_BYTES;
    int64_t each = tr__max_i64(bytes / (classes * (int64_t)sizeof(float)), 1);
    return tr__ceil_div(tokens, each);
}

static bool share_classes(tr_graph *graph, const tr_rewrite_node *node,
                          tr_value *results) {
    tr_lce_shared_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    tr_shape x = tr_graph_desc(graph, node->in[X]).shape;
    int64_t tokens = x.rank > 2 ? x.dim[1] : 1;
    int64_t parts = parts_of(node, attr.classes, tokens);
    for (int64_t k = 0; k < parts; k++) {
        int64_t first = tokens * k / parts, end = tokens * (k + 1) / parts;
        part p = take_part(graph, node, &(tr_rows_attr){first, end - first, tokens});
        results[0] = fold_part(graph, node, &attr.slice, &p);
    }
    return true;
}

const tr_rewrite tr__rewrites_split[] = {
    {TR_REWRITE_SPLIT, &tr__op_linear_cross_entropy, NULL, share_classes},
    {0},
};
