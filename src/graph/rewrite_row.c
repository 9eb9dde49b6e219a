// What a row's function calls (tranche/extend/rewrite.h), beside the functions of every
// graph.
#include "graph/graph.h"
#include "ops/nn/all_reduce/all_reduce.h"

bool tr_rewrite_as(tr_graph *graph, const tr_rewrite_node *node, const tr_op *op,
                   const void *attr, tr_value *results) {
    tr_value out[TR_OP_OUT_MAX];
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        out[i] = TR_NO_VALUE;
    }
    tr_graph_op(graph, op, attr, node->in, node->in_count, out);
    for (int i = 0; i < node->out_count; i++) {
        results[i] = out[i];
    }
    return true;
}

tr_value tr_graph_sum_over_ranks(tr_graph *graph, tr_value x) {
    const tr_all_reduce_attr attr = {.axes = graph->writing.axes};
    if (graph->err.status == TR_OK && attr.axes == 0) {
        tr_graph_fail(graph, TR_USAGE,
                      "a sum over ranks is asked for by a row of TR_REWRITE_SPLIT");
    }
    return tr_graph_op(graph, &tr__op_all_reduce, &attr, &x, 1, NULL);
}

tr_value tr_graph_cache(tr_graph *graph, tr_tensor_desc desc, int64_t positions) {
    tr_writing *writing = &graph->writing;
    if (graph->err.status != TR_OK) {
        return TR_NO_VALUE;
    }
    if (!writing->on || writing->variant != TR_REWRITE_CACHE || positions < 1 ||
        tr_shape_count(desc.shape) == 0) {
        tr_graph_fail(graph, TR_USAGE,
                      "a cache has positions, and is asked for by a row of "
                      "TR_REWRITE_CACHE");
        return TR_NO_VALUE;
    }
    graph->cache_room = positions < graph->cache_room ? positions : graph->cache_room;
    return tr__graph_value(graph,
                           (tr_value_info){.desc = desc, .kind = TR_VALUE_CACHE});
}

void tr_graph_cache_after(tr_graph *graph, tr_value cache, tr_value made) {
    tr_writing *writing = &graph->writing;
    if (graph->err.status != TR_OK) {
        return;
    }
    if (!writing->on || cache == TR_NO_VALUE || made == TR_NO_VALUE ||
        graph->values[cache].kind != TR_VALUE_CACHE ||
        writing->cache_count == TR_GRAPH_CACHES_MAX) {
        tr_graph_fail(graph, TR_USAGE,
                      "a row of TR_REWRITE_CACHE has at most %d caches, which nodes "
                      "that it writes go on with",
                      (int)TR_GRAPH_CACHES_MAX);
        return;
    }
    writing->cache[writing->cache_count] = cache;
    writing->cache_after[writing->cache_count++] = made;
}
