// Writes the nodes, values and parameters of one rank of those that share a unit.
#include "graph/splitter.h"

#include "base/memory.h"
#include "ops/nn/all_reduce/all_reduce.h"
#include "ops/nn/bias/bias.h"
#include "ops/operand.h"

#include <string.h>

static tr_value add_value(tr_splitter *s, tr_tensor_desc desc) {
    return tr__graph_value(s->graph,
                           (tr_value_info){.desc = desc, .kind = TR_VALUE_NODE});
}

// A node of its own in the place of `like`.
static void put_new(tr_splitter *s, const tr_call *like, const tr_op *op,
                    const tr_value in[2], tr_value out) {
    const tr_all_reduce_attr attr = {.axes = s->walk->axes};
    tr_call call = {.op = op,
                    .in_count = in[1] == TR_NO_VALUE ? 1 : 2,
                    .out_count = 1,
                    .in = {in[0], in[1]},
                    .out = {out},
                    .segment = like->segment,
                    .origin = like->origin};
    if (op->attr_bytes == sizeof attr) {
        memcpy(call.attr, &attr, sizeof attr);
    }
    tr__graph_keep_node(s->graph, &call);
}

// The value itself, of which every rank makes a part of the gradient.
static tr_value share_value(tr_splitter *s, const tr_call *like, tr_value value) {
    if (s->shared[value] == TR_NO_VALUE) {
        tr_value in[2] = {value, TR_NO_VALUE};
        s->shared[value] = add_value(s, tr__split_info(s, value)->desc);
        put_new(s, like, &tr__op_all_reduce_gradient, in, s->shared[value]);
    }
    return s->shared[value];
}

static void cut_param(tr_splitter *s, tr_param_info *param, int dim, int64_t blocks) {
    int64_t inner = 1, size = param->shape.dim[dim] / blocks;
    int64_t own = tr__cut_count(size, s->walk->ranks, s->walk->rank);
    for (int d = dim + 1; d < param->shape.rank; d++) {
        inner *= param->shape.dim[d];
    }
    param->split = true;
    param->whole_shape = param->shape;
    param->lies =
        (tr_stride){.first = tr__cut_first(size, s->walk->ranks, s->walk->rank) * inner,
                    .run = own * inner,
                    .every = size * inner};
    param->room = tr_shape_count(param->whole_shape) / size *
                  tr__cut_count(size, s->walk->ranks, 0);
    param->shape.dim[dim] = own * blocks;
}

static void cut_params(tr_splitter *s, tr_value value, const tr_cut *cut,
                       const tr_family *f) {
    size_t first, end;
    int64_t elements = 0, room = 0;
    bool uneven = false;
    tr__split_stack(s, value, &first, &end);
    for (size_t p = first; p < end; p++) {
        int64_t blocks = end - first == 1 && f && f->blocks > 0 ? f->blocks : 1;
        tr_param_info *param = &s->graph->params[p];
        cut_param(s, param, cut->dim, blocks);
        elements += param->shape.dim[cut->dim];
        // One lies right behind the other: the last has the room that others leave.
        // Behind unequal parts lies an element more: so all ranks have something to
        // clear there, and their plans the same steps.
        room += param->room - tr_shape_count(param->shape);
        uneven = uneven ||
                 param->room * s->walk->ranks != tr_shape_count(param->whole_shape);
        param->room = tr_shape_count(param->shape) + (p + 1 == end ? room + uneven : 0);
    }
    tr__split_info(s, value)->desc.shape.dim[cut->dim] = elements;
}

// What the node works on, on this rank.
static void write_inputs(tr_splitter *s, tr_call *node, const tr_split *way) {
    const tr_call old = *node;
    for (int i = 0; i < old.in_count; i++) {
        tr_value value = old.in[i];
        if (value == TR_NO_VALUE) {
            continue;
        }
        if (tr__split_is_param(s, value) && way->in[i].dim >= 0) {
            cut_params(s, value, &way->in[i], tr__split_family(s, &old, way, i));
        } else if (way->partial_gradient >> i & 1) {
            node->in[i] = share_value(s, &old, value);
        }
    }
}

// Sums over ranks, and what is added behind it.
static void write_sum(tr_splitter *s, const tr_call *node, tr_value part,
                      tr_value added, tr_value whole) {
    tr_value sum =
        added == TR_NO_VALUE ? whole : add_value(s, tr__split_info(s, whole)->desc);
    put_new(s, node, &tr__op_all_reduce, (tr_value[2]){part, TR_NO_VALUE}, sum);
    if (added != TR_NO_VALUE) {
        put_new(s, node, &tr__op_bias, (tr_value[2]){sum, added}, whole);
    }
}

static void write_split(tr_splitter *s, const tr_call *old, const tr_split *way) {
    tr_call node = *old;
    tr_value added = TR_NO_VALUE, whole = old->out[0];
    write_inputs(s, &node, way);
    memcpy(node.attr, way->attr, sizeof node.attr);
    if (way->expands) {
        tr__graph_rewrite_node(s->graph, s->walk, &node);
        return;
    }
    if (way->added > 0) {
        added = node.in[way->added - 1];
        node.in[way->added - 1] = TR_NO_VALUE;
    }
    if (way->partial & 1) {
        node.out[0] = add_value(s, tr__split_info(s, whole)->desc);
    }
    tr__graph_keep_node(s->graph, &node);
    if (way->partial & 1) {
        write_sum(s, &node, node.out[0], added, whole);
    }
}

static int64_t elements_of(const tr_splitter *s, const tr_family *f, int64_t all) {
    int64_t own = f->blocks > 0 ? 0 : tr__cut_count(all, s->walk->ranks, s->walk->rank);
    for (int b = 0; b < f->blocks; b++) {
        own += tr__cut_count(f->block[b], s->walk->ranks, s->walk->rank);
    }
    return own;
}

static void cut_values(tr_splitter *s, size_t count) {
    for (size_t v = 0; v < count; v++) {
        if (s->family_of[v] >= 0) {
            const tr_family *f = &s->families[s->family_of[v]];
            int64_t *size = &tr__split_info(s, (tr_value)v)->desc.shape.dim[f->dim];
            *size = elements_of(s, f, *size);
        }
    }
}

void tr__split_write(tr_splitter *s) {
    tr_graph *graph = s->graph;
    tr_call *old = graph->nodes;
    size_t count = graph->node_count, values = graph->value_count;
    graph->nodes = NULL;
    graph->node_count = graph->node_capacity = 0;
    for (size_t n = 0; n < count && graph->err.status == TR_OK; n++) {
        if (s->is_split[n]) {
            write_split(s, &old[n], &s->splits[n]);
        } else {
            tr__graph_keep_node(graph, &old[n]);
        }
    }
    cut_values(s, values);
    tr__graph_number_nodes(graph);
    tr__free(old);
}
