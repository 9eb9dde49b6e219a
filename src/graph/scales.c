#include "graph/scales.h"

#include "base/memory.h"
#include "ops/nn/largest/largest.h"
#include "ops/nn/linear_fp8/linear_fp8.h"

#include <string.h>

// What tells the largest value of a tensor.
typedef struct source {
    tr_value value; // TR_NO_VALUE: nothing yet
    int32_t column;
} source;

typedef struct sharing {
    tr_graph *graph;
    const tr_rewrite_walk *walk;
    const tr_call *old;
    size_t count;
    source *of; // [values]
} sharing;

static bool is_part(const sharing *s, tr_value value) {
    const tr_value_info *info = &s->graph->values[value];
    return info->kind == TR_VALUE_PARAM ? s->graph->params[info->index].split
                                        : info->part;
}

// What passes from segment to segment is kept: each finds its own.
static bool is_told(const sharing *s, const tr_call *node, tr_value value) {
    tr_value by = s->of[value].value;
    return by != TR_NO_VALUE && s->graph->values[by].segment == node->segment;
}

static bool lacks(const sharing *s, const tr_call *node, int factor) {
    return node->op == &tr__op_linear_fp8 && is_part(s, node->in[factor]) &&
           !is_told(s, node, node->in[factor]);
}

// ---- nodes in the place of `like`

static tr_value put(sharing *s, const tr_call *like, const tr_op *op, const void *attr,
                    const tr_value *in, int in_count, tr_shape shape) {
    tr_value_info info = {
        .desc = {TR_F32, shape}, .kind = TR_VALUE_NODE, .segment = like->segment};
    tr_value out = tr__graph_value(s->graph, info);
    tr__graph_put_node(s->graph, like, op, attr, in, in_count, out);
    return out;
}

static void gather(sharing *s, const tr_call *like, const tr_value *tensors,
                   const tr_value *largest, int count) {
    const tr_rewrite_walk *w = s->walk;
    const tr_gather_largest_attr attr = {w->axes, (int32_t)w->ranks, (int32_t)w->rank};
    tr_value all = put(s, like, &tr__op_gather_largest, &attr, largest, count,
                       TR_SHAPE2(w->ranks, count));
    for (int i = 0; i < count; i++) {
        s->of[tensors[i]] = (source){all, i};
    }
}

static tr_value find(sharing *s, const tr_call *like, tr_value tensor, int factor) {
    const tr_largest_attr attr = {.rows = factor == 0};
    return put(s, like, &tr__op_largest, &attr, &tensor, 1, TR_SHAPE1(1));
}

// Of the weights of all products of the segment, from node n on: as many as one message
// takes.
static void share_weights(sharing *s, size_t n) {
    const tr_call *like = &s->old[n];
    tr_value tensors[TR_OP_IN_MAX], largest[TR_OP_IN_MAX];
    int count = 0;
    for (size_t m = n; m < s->count && count < TR_OP_IN_MAX; m++) {
        const tr_call *node = &s->old[m];
        if (node->segment == like->segment && lacks(s, node, 1)) {
            tensors[count] = node->in[1];
            largest[count++] = find(s, like, node->in[1], 1);
        }
    }
    gather(s, like, tensors, largest, count);
}

// ---- products

static void share_factors(sharing *s, size_t n) {
    const tr_call *node = &s->old[n];
    if (lacks(s, node, 1)) {
        share_weights(s, n);
    }
    if (lacks(s, node, 0)) {
        tr_value largest = find(s, node, node->in[0], 0);
        gather(s, node, &node->in[0], &largest, 1);
    }
}

static void write_product(sharing *s, const tr_call *node) {
    const tr_rewrite_walk *w = s->walk;
    tr_call told = *node;
    tr_linear_fp8_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    for (int i = node->in_count; i < TR_OP_IN_MAX; i++) {
        told.in[i] = TR_NO_VALUE;
    }
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        if (is_told(s, node, node->in[i])) {
            told.in_count = tr__fp8_plain_inputs(node->op) + i + 1;
            told.in[told.in_count - 1] = s->of[node->in[i]].value;
            attr.column[i] = s->of[node->in[i]].column;
        }
    }
    if (is_part(s, node->out[0])) {
        attr.axes = w->axes;
        attr.ranks = (int32_t)w->ranks;
        attr.rank = (int32_t)w->rank;
    }
    memcpy(told.attr, &attr, sizeof attr);
    tr__graph_keep_node(s->graph, &told);
}

static void write_nodes(sharing *s) {
    for (size_t n = 0; n < s->count && s->graph->err.status == TR_OK; n++) {
        if (s->old[n].op == &tr__op_linear_fp8) {
            share_factors(s, n);
            write_product(s, &s->old[n]);
        } else {
            tr__graph_keep_node(s->graph, &s->old[n]);
        }
    }
}

tr_status tr__graph_share_scales(tr_graph *graph, const tr_rewrite_walk *walk,
                                 tr_error *err) {
    source *of = tr__calloc(graph->value_count, sizeof *of);
    if (graph->err.status != TR_OK || !of) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's graph");
        tr__free(of);
        return tr_graph_status(graph, err);
    }
    for (size_t v = 0; v < graph->value_count; v++) {
        of[v].value = TR_NO_VALUE;
    }
    size_t count;
    tr_call *old = tr__graph_take_nodes(graph, &count);
    write_nodes(&(sharing){graph, walk, old, count, of});
    tr__graph_number_nodes(graph);
    tr__free(old);
    tr__free(of);
    return tr_graph_status(graph, err);
}
