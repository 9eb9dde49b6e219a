#include "graph/written.h"

#include "base/memory.h"

#include <string.h>

void tr__written_begin(tr_written *written, tr_graph *graph, const tr_call *node) {
    *written = (tr_written){.graph = graph,
                            .node = node,
                            .values = graph->value_count,
                            .nodes = graph->node_count,
                            .params = graph->param_count,
                            .states = graph->state_count};
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        written->results[i] = TR_NO_VALUE;
    }
}

bool tr__written_nothing(const tr_written *w) {
    tr_graph *graph = w->graph;
    bool same = graph->value_count == w->values && graph->node_count == w->nodes;
    if (!same) {
        tr_graph_fail(
            graph, TR_USAGE,
            "a rewrite leaves a node of op %s as it is, and has written nodes",
            w->node->op->name);
    }
    return same;
}

// ---- checks

static bool same_desc(const tr_tensor_desc *a, const tr_tensor_desc *b) {
    return a->dtype == b->dtype && tr_shape_equal(a->shape, b->shape);
}

static bool is_written(const tr_written *w, tr_value value) {
    return value >= (tr_value)w->values && (size_t)value < w->graph->value_count &&
           w->graph->values[value].kind == TR_VALUE_NODE;
}

static bool is_written_cache(const tr_written *w, tr_value value) {
    return value >= (tr_value)w->values && (size_t)value < w->graph->value_count &&
           w->graph->values[value].kind == TR_VALUE_CACHE;
}

// Two results are two values.
static bool is_once(const tr_written *w, int result) {
    for (int i = 0; i < result; i++) {
        if (w->results[i] == w->results[result]) {
            return false;
        }
    }
    return true;
}

static bool is_logits(const tr_written *w, int result) {
    tr_rewrite_variant variant = w->graph->writing.variant;
    bool logits = variant == TR_REWRITE_LOGITS || variant == TR_REWRITE_ALL_LOGITS;
    return logits && result == 0;
}

static bool stands_for(const tr_written *w, int result) {
    const tr_value_info *made = &w->graph->values[w->results[result]];
    const tr_value_info *for_it = &w->graph->values[w->node->out[result]];
    return is_logits(w, result) ||
           (same_desc(&made->desc, &for_it->desc) && made->wave == for_it->wave &&
            made->sums == for_it->sums);
}

static bool results_fit(const tr_written *w) {
    for (int i = 0; i < w->node->out_count; i++) {
        if (w->results[i] == TR_NO_VALUE) {
            continue;
        }
        if (!is_written(w, w->results[i]) || !is_once(w, i) || !stands_for(w, i)) {
            tr_graph_fail(w->graph, TR_USAGE,
                          "a rewrite of op %s: what stands for result %d is not the "
                          "result, of the same type and shape, of a node that it wrote",
                          w->node->op->name, i);
            return false;
        }
    }
    return true;
}

static bool caches_fit(const tr_written *w) {
    const tr_writing *writing = &w->graph->writing;
    const tr_value_info *values = w->graph->values;
    for (int i = 0; i < writing->cache_count; i++) {
        tr_value made = writing->cache_after[i], cache = writing->cache[i];
        if (!is_written(w, made) || !is_written_cache(w, cache) ||
            !same_desc(&values[made].desc, &values[cache].desc)) {
            tr_graph_fail(
                w->graph, TR_USAGE,
                "a rewrite of op %s: what goes on with its cache is not of the "
                "same type and shape",
                w->node->op->name);
            return false;
        }
    }
    return true;
}

void tr__written_check(tr_graph *graph) {
    bool *made = tr__calloc(graph->value_count, sizeof *made);
    if (!made) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's graph");
        return;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const tr_call *node = &graph->nodes[n];
        for (int i = 0; i < node->in_count; i++) {
            tr_value in = node->in[i];
            bool there = in == TR_NO_VALUE || made[in] ||
                         graph->values[in].kind != TR_VALUE_NODE;
            if (!there && graph->err.status == TR_OK) {
                tr_graph_fail(graph, TR_USAGE,
                              "op %s reads what a rewrite has left out, or makes later",
                              node->op->name);
            }
        }
        for (int i = 0; i < node->out_count; i++) {
            made[node->out[i]] = true;
        }
    }
    for (int i = 0; i < graph->output_count && graph->err.status == TR_OK; i++) {
        if (!made[graph->output[i]]) {
            tr_graph_fail(graph, TR_USAGE,
                          "a rewrite has left out what a unit hands on");
        }
    }
    tr__free(made);
}

// ---- numbers

// Values of the row from the first on, to what they are from now on.
static tr_value renumbered(const tr_written *w, const tr_value *to, tr_value value) {
    return value < (tr_value)w->values ? value : to[value - (tr_value)w->values];
}

static void rename_all(const tr_written *w, const tr_value *to, tr_value *list,
                       int count) {
    for (int i = 0; i < count; i++) {
        list[i] = renumbered(w, to, list[i]); // TR_NO_VALUE stays
    }
}

static void rename_graph(const tr_written *w, const tr_value *to) {
    tr_graph *graph = w->graph;
    for (size_t n = w->nodes; n < graph->node_count; n++) {
        rename_all(w, to, graph->nodes[n].in, graph->nodes[n].in_count);
        rename_all(w, to, graph->nodes[n].out, graph->nodes[n].out_count);
    }
    for (size_t i = w->params; i < graph->param_count; i++) {
        rename_all(w, to, &graph->params[i].value, 1);
    }
    for (size_t i = w->states; i < graph->state_count; i++) {
        rename_all(w, to, &graph->states[i].value, 1);
    }
    rename_all(w, to, graph->input_value, TR_GRAPH_IO_MAX);
    rename_all(w, to, graph->data_value, graph->batch.count);
    rename_all(w, to, graph->data_seen, graph->batch.count);
}

// Results become the node's outputs, what goes on with a cache the cache; others move
// up behind the values that were there. Returns the number of values.
static size_t number_values(const tr_written *w, tr_value *to) {
    const tr_writing *writing = &w->graph->writing;
    size_t count = w->graph->value_count, next = w->values;
    for (size_t v = w->values; v < count; v++) {
        to[v - w->values] = TR_NO_VALUE;
    }
    for (int i = 0; i < w->node->out_count; i++) {
        if (w->results[i] != TR_NO_VALUE && !is_logits(w, i)) {
            to[w->results[i] - (tr_value)w->values] = w->node->out[i];
        }
    }
    for (int i = 0; i < writing->cache_count; i++) {
        // Until the caches have their numbers, any that is no new one's.
        to[writing->cache_after[i] - (tr_value)w->values] = 0;
    }
    for (size_t v = w->values; v < count; v++) {
        if (to[v - w->values] == TR_NO_VALUE) {
            w->graph->values[next] = w->graph->values[v];
            to[v - w->values] = (tr_value)next++;
        }
    }
    for (int i = 0; i < writing->cache_count; i++) {
        to[writing->cache_after[i] - (tr_value)w->values] =
            renumbered(w, to, writing->cache[i]);
    }
    return next;
}

// Training, evaluation and inference have the same parameters and states.
static bool adds_nothing(const tr_written *w) {
    tr_graph *graph = w->graph;
    tr_rewrite_variant variant = graph->writing.variant;
    bool may = variant == TR_REWRITE_ALWAYS || variant == TR_REWRITE_FP8;
    bool adds = graph->param_count > w->params || graph->state_count > w->states;
    if (adds && !may) {
        tr_graph_fail(
            graph, TR_USAGE,
            "a rewrite of op %s that is not of training adds a parameter or a "
            "state",
            w->node->op->name);
    }
    return may || !adds;
}

void tr__written_settle(tr_written *w) {
    tr_graph *graph = w->graph;
    if (!results_fit(w) || !caches_fit(w) || !adds_nothing(w)) {
        return;
    }
    size_t added = graph->value_count - w->values;
    tr_value *to = tr__calloc(added, sizeof *to);
    if (!to) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's graph");
        return;
    }
    for (int i = 0; i < w->node->out_count; i++) {
        if (is_logits(w, i) && w->results[i] != TR_NO_VALUE) {
            graph->values[w->results[i]].kind = TR_VALUE_LOGITS;
        }
    }
    graph->value_count = number_values(w, to);
    rename_graph(w, to);
    tr__free(to);
}
