// Writes the nodes, values and parameters of one rank of those that share a unit.
#include "graph/splitter.h"

#include "base/memory.h"
#include "ops/operand.h"

#include <string.h>

// All of an input, or this rank's part of it, as the way says.
static tr_value write_input(tr_splitter *s, const tr_call *node, const tr_split *way,
                            int i) {
    tr_value value = node->in[i];
    bool part_of_gradient = way->partial_gradient >> i & 1;
    if (way->in[i].tokens) {
        return s->cut_tokens[value] ? value : tr__split_part(s, node, value);
    }
    if (s->family_of[value] >= 0) {
        return value;
    }
    bool summed = tr__split_is_param(s, value) &&
                  s->graph->params[tr__split_info(s, value)->index].summed;
    return tr__split_all(s, node, value, part_of_gradient && !summed);
}

// What the node works on, on this rank.
static void write_inputs(tr_splitter *s, tr_call *node, const tr_split *way) {
    const tr_call old = *node;
    for (int i = 0; i < old.in_count; i++) {
        if (old.in[i] == TR_NO_VALUE) {
            continue;
        }
        bool cut = tr__split_is_param(s, old.in[i]) && way->in[i].dim >= 0;
        if (way->taken == i + 1) {
            node->in[i] = tr__split_taken(s, old.in[i], way);
        } else if (cut && (way->follows >> i & 1)) {
            continue; // another node has cut it
        } else if (cut) {
            tr__split_params(s, old.in[i], way->in[i].dim,
                             tr__split_family(s, &old, way, i));
        } else if (way->added != i + 1) {
            node->in[i] = write_input(s, &old, way, i);
        }
    }
}

// Sums over ranks, of whole tensors or of this rank's tokens, and what is added behind
// it: to whole tensors once, to tokens by the rank that has them.
static void write_sum(tr_splitter *s, const tr_call *node, tr_value part,
                      tr_value added, tr_value result) {
    tr_tensor_desc desc = tr__split_info(s, result)->desc;
    bool tokens = s->cut_tokens[result];
    desc.shape.dim[1] /= tokens ? s->walk->ranks : 1;
    tr_value sum = added == TR_NO_VALUE ? result
                   : tokens             ? tr__split_value_part(s, node, desc)
                                        : tr__split_value(s, node, desc);
    if (tokens) {
        tr__split_sum_tokens(s, node, part, sum);
    } else {
        tr__split_sum(s, node, part, sum);
    }
    if (added != TR_NO_VALUE) {
        bool summed = s->graph->params[tr__split_info(s, added)->index].summed;
        added = tokens && !summed ? tr__split_all(s, node, added, true) : added;
        tr__split_bias(s, node, sum, added, result);
    }
}

static void write_split(tr_splitter *s, const tr_call *old, const tr_split *way) {
    tr_call node = *old;
    tr_value added = TR_NO_VALUE, whole = old->out[0];
    bool apart = tr__split_mixed(s, old, way); // of parameters as they were
    write_inputs(s, &node, way);
    memcpy(node.attr, way->attr, sizeof node.attr);
    if (way->expands) {
        tr__graph_rewrite_node(s->graph, s->walk, &node);
        return;
    }
    if (apart) {
        tr__split_write_apart(s, old, &node);
        return;
    }
    if (way->added > 0) {
        added = node.in[way->added - 1];
        node.in[way->added - 1] = TR_NO_VALUE;
    }
    if (way->partial & 1) {
        node.out[0] = tr__split_value(s, old, tr__split_info(s, whole)->desc);
    }
    tr__graph_keep_node(s->graph, &node);
    if (way->partial & 1) {
        write_sum(s, old, node.out[0], added, whole);
    }
}

// One that shares no work: all ranks have all of what it reads.
static void write_whole(tr_splitter *s, const tr_call *old) {
    tr_call node = *old;
    for (int i = 0; i < old->in_count; i++) {
        if (old->in[i] != TR_NO_VALUE) {
            node.in[i] = tr__split_all(s, old, old->in[i], false);
        }
    }
    tr__graph_keep_node(s->graph, &node);
}

// What the unit hands on is cut where it can be; the caller gets all.
static void write_outputs(tr_splitter *s) {
    tr_graph *graph = s->graph;
    for (int i = 0; i < graph->output_count && graph->node_count > 0; i++) {
        const tr_call last = graph->nodes[graph->node_count - 1];
        tr_value value = graph->output[i];
        if (s->walk->hands_out) {
            graph->output[i] = tr__split_all(s, &last, value, false);
        } else if (!s->cut_tokens[value] && tr__split_has_tokens(s, value)) {
            graph->output[i] = tr__split_part(s, &last, value);
            graph->output_cut[i] = true;
        } else {
            graph->output_cut[i] = s->cut_tokens[value];
        }
    }
}

static int64_t elements_of(const tr_splitter *s, const tr_family *f, int64_t all) {
    int64_t first, own = f->blocks > 0 ? 0 : tr__split_own(s, f, 0, all, &first);
    for (int b = 0; b < f->blocks; b++) {
        own += tr__split_own(s, f, b, f->block[b], &first);
    }
    return own;
}

static void cut_values(tr_splitter *s, size_t count) {
    for (size_t v = 0; v < count; v++) {
        if (s->family_of[v] >= 0) {
            const tr_family *f = &s->families[s->family_of[v]];
            int64_t *size =
                &tr__split_info(s, (tr_value)v)->desc.shape.dim[s->dim_of[v]];
            *size = elements_of(s, f, *size);
            tr__split_info(s, (tr_value)v)->part = true;
        } else if (s->cut_tokens[v]) {
            tr__split_info(s, (tr_value)v)->desc.shape.dim[1] /= s->walk->ranks;
            tr__split_info(s, (tr_value)v)->part = true;
        }
    }
    for (int i = 0; i < s->graph->input_count; i++) {
        if (s->graph->input_cut[i]) {
            s->graph->inputs[i].shape.dim[1] /= s->walk->ranks;
        }
    }
}

void tr__split_write(tr_splitter *s) {
    tr_graph *graph = s->graph;
    size_t count, values = graph->value_count;
    tr_call *old = tr__graph_take_nodes(graph, &count);
    for (size_t n = 0; n < count && graph->err.status == TR_OK; n++) {
        if (s->is_split[n] || s->by_tokens[n]) {
            write_split(s, &old[n], &s->splits[n]);
        } else {
            write_whole(s, &old[n]);
        }
    }
    if (s->walk->tokens > 0) {
        write_outputs(s);
    }
    cut_values(s, values);
    tr__graph_number_nodes(graph);
    tr__free(old);
}
