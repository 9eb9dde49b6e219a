// Inference with caches: ops that look at earlier positions find them in a cache.
#include "graph/rewrite.h"
#include "ops/nn/attention/attention.h"

#include <string.h>

static bool go_on(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    tr_attention_attr attr;
    tr_tensor_desc qkv = tr_graph_desc(graph, node->in[0]);
    tr_value out[TR_OP_OUT_MAX] = {TR_NO_VALUE, TR_NO_VALUE};
    memcpy(&attr, node->attr, sizeof attr);
    if (attr.both) {
        tr_graph_fail(
            graph, TR_USAGE,
            "attention both ways has no cache: what a token gives changes with "
            "the tokens behind it, so this model cannot write a text");
        return false;
    }
    int64_t room =
        tr__attention_cache_room(&attr, node->cache_positions, node->cache_piece);
    tr_value cache = tr_graph_cache(graph, tr__attention_cache(qkv, &attr, room), room);
    results[0] = tr_graph_op(graph, &tr__op_attention_cached, &attr,
                             (tr_value[]){node->in[0], cache}, 2, out);
    tr_graph_cache_after(graph, cache, out[1]);
    return true;
}

const tr_rewrite tr__rewrites_caches[] = {
    {TR_REWRITE_CACHE, &tr__op_attention, NULL, go_on},
    {0},
};
