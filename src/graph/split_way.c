// The ways of a node that its op has, of which some need a rewrite, and values that
// have tokens to be cut along.
#include "graph/recompute.h"
#include "graph/splitter.h"

#include <string.h>

// Inference puts others in the place of losses: none is shared.
static bool can_expand(const tr_splitter *s, const tr_call *node) {
    return s->tied && tr__rewrite_row(s->walk->own, node->op, TR_REWRITE_SPLIT) != NULL;
}

bool tr__split_way(const tr_splitter *s, const tr_call *node, int way, tr_split *out) {
    tr_node_view view;
    tr__node_view(s->graph, node, &view);
    *out = (tr_split){.added = 0};
    memcpy(out->attr, node->attr, sizeof out->attr);
    return node->op->split &&
           node->op->split(&view.node, way, s->walk->ranks, s->walk->rank, out) &&
           (!out->expands || can_expand(s, node));
}

bool tr__split_has_tokens(const tr_splitter *s, tr_value value) {
    const tr_value_info *info = tr__split_info(s, value);
    const tr_shape *shape = &info->desc.shape;
    bool passes = info->kind == TR_VALUE_NODE || info->kind == TR_VALUE_INPUT;
    return passes && !info->wave && !info->sums && s->family_of[value] < 0 &&
           shape->rank >= 2 && shape->dim[0] == TR_BATCH &&
           shape->dim[1] == s->walk->tokens;
}
