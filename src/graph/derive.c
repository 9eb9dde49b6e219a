#include "graph/derive_walk.h"

#include "base/memory.h"

#include <string.h>

// Of what comes into the graph, only trained parameters have a gradient, and inputs
// that depend on such.
static bool is_trained(const tr_graph *graph, const tr_value_info *info) {
    return (info->kind == TR_VALUE_PARAM && !graph->params[info->index].frozen) ||
           (info->kind == TR_VALUE_INPUT && !graph->input_fixed[info->index]);
}

// What is one tensor for several micro-batches is added to.
static void mark_adds(const tr_graph *graph, tr_call *nodes, size_t count) {
    for (size_t n = 0; n < count; n++) {
        for (int i = 0; i < nodes[n].out_count; i++) {
            tr_value out = nodes[n].out[i];
            const tr_value_info *what = out == TR_NO_VALUE ? NULL : &graph->values[out];
            nodes[n].first |= (uint32_t)(what && what->wave) << i;
            nodes[n].accumulate |= (uint32_t)(what && what->sums) << i;
        }
    }
}

// Which values have a gradient at all, and which pass from one segment to another.
static void look_forward(tr_walk *w) {
    tr_graph *graph = w->graph;
    w->out->exists = false;
    for (size_t v = 0; v < w->forward_count; v++) {
        w->wants[v] = is_trained(graph, &graph->values[v]);
        w->out->exists = w->out->exists || w->wants[v];
        w->storage[v] = TR_NO_VALUE;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        tr_call *node = &graph->nodes[n];
        bool wants = false;
        w->out->exists = w->out->exists || (node->op->flags & TR_OP_LOSS);
        for (int i = 0; i < node->in_count; i++) {
            tr_value value = node->in[i];
            if (value == TR_NO_VALUE) {
                continue;
            }
            const tr_value_info *what = tr__walk_info(w, value);
            wants = wants || (w->wants[value] && !(node->op->no_gradient >> i & 1));
            int ignored;
            if (what->kind == TR_VALUE_NODE && !what->wave &&
                what->segment != node->segment &&
                !tr__walk_output(graph, value, &ignored)) {
                w->out->saved[value] = true;
            }
        }
        for (int i = 0; i < node->out_count; i++) {
            w->wants[node->out[i]] = wants;
        }
    }
}

static void begin_with_outputs(tr_walk *w) {
    for (int i = 0; i < w->graph->output_count; i++) {
        tr_value value = w->graph->output[i];
        w->out->output_grad[i] = TR_NO_VALUE;
        if (w->wants[value]) {
            w->storage[value] = w->out->output_grad[i] = tr__walk_gradient(w, value);
        }
    }
}

// May the gradient of input `i` be handed on from where it lies?
static bool is_free(tr_walk *w, tr_value storage, int i) {
    tr_value of = (tr_value)tr__walk_info(w, storage)->index;
    bool free = !tr__walk_collected(w, of);
    for (int k = 0; k < w->graph->output_count; k++) {
        free = free && w->out->output_grad[k] != storage;
    }
    for (int k = 0; k < i; k++) {
        free = free && w->out->input_grad[k] != storage;
    }
    return free;
}

// The gradient of input `i` has to lie in storage of its own, or in that of the output.
static void end_with_input(tr_walk *w, int i) {
    tr_graph *graph = w->graph;
    tr_value input = graph->input_value[i];
    tr_value storage = input == TR_NO_VALUE ? TR_NO_VALUE : w->storage[input];
    w->out->input_grad[i] = TR_NO_VALUE;
    if (graph->input_fixed[i]) {
        return;
    }
    if (storage == TR_NO_VALUE) {
        tr_graph_fail(graph, TR_INTERNAL,
                      "nothing that a unit makes depends on tensor %d of the unit "
                      "before",
                      i);
        return;
    }
    bool one_each = graph->input_count == 1 && graph->output_count == 1;
    bool held = tr__walk_held(w, storage);
    if (is_free(w, storage, i) && !held) {
        w->out->input_grad[i] = storage;
    } else if (one_each && storage == w->out->output_grad[0] && !held) {
        w->out->input_grad[i] = storage;
        w->out->in_place = true;
    } else {
        tr_value own = tr__walk_gradient(w, input);
        tr__walk_copy(w, storage, own, false, false, 0);
        w->out->input_grad[i] = own;
    }
}

static void need_node(tr_walk *w, int index) {
    if (w->out->needed[index]) {
        return;
    }
    w->out->needed[index] = true;
    const tr_call *node = &w->graph->nodes[index];
    for (int i = 0; i < node->in_count; i++) {
        if (node->in[i] == TR_NO_VALUE) {
            continue;
        }
        const tr_value_info *what = tr__walk_info(w, node->in[i]);
        if (what->kind == TR_VALUE_NODE && !what->wave) {
            need_node(w, what->node);
        }
    }
}

static bool allocate(tr_walk *w) {
    size_t values = w->forward_count;
    tr_derivation *out = w->out;
    w->wants = tr__calloc(values, sizeof *w->wants);
    w->consumed = tr__calloc(values, sizeof *w->consumed);
    w->storage = tr__calloc(values, sizeof *w->storage);
    out->read = tr__calloc(values, sizeof *out->read);
    out->dropped = tr__calloc(values, sizeof *out->dropped);
    out->saved = tr__calloc(values, sizeof *out->saved);
    out->recomputed = tr__calloc(values, sizeof *out->recomputed);
    out->needed = tr__calloc(w->graph->node_count, sizeof *out->needed);
    return w->wants && w->consumed && w->storage && out->read && out->dropped &&
           out->saved && out->recomputed && out->needed;
}

static void run(tr_walk *w) {
    tr_graph *graph = w->graph;
    look_forward(w);
    begin_with_outputs(w);
    for (size_t n = graph->node_count; n-- > 0 && graph->err.status == TR_OK;) {
        tr__walk_node(w, n);
    }
    for (int i = 0; i < graph->input_count && graph->err.status == TR_OK; i++) {
        end_with_input(w, i);
    }
}

static void note_boundaries(tr_walk *w) {
    tr_derivation *out = w->out;
    for (int i = 0; i < w->graph->input_count; i++) {
        if (out->reads_input[i]) {
            out->read[w->graph->input_value[i]] = true;
        }
    }
    for (int i = 0; i < w->graph->output_count; i++) {
        if (out->reads_output[i]) {
            out->read[w->graph->output[i]] = true;
        }
    }
}

// A first walk, in which everything is kept, has found what the backward reads. Lets go
// of all else that it left, and chooses what the second one drops.
static bool begin_again(tr_walk *w, uint32_t recomputed) {
    size_t values = w->forward_count;
    tr_derivation *out = w->out;
    w->graph->value_count = values;
    memcpy(out->read, out->saved, values * sizeof *out->read);
    note_boundaries(w);
    memset(out->saved, 0, values * sizeof *out->saved);
    memset(w->consumed, 0, values * sizeof *w->consumed);
    memset(out->reads_input, 0, sizeof out->reads_input);
    memset(out->reads_output, 0, sizeof out->reads_output);
    out->backward_count = 0;
    out->in_place = false;
    return tr__recompute_choose(w->graph, values, out->read, recomputed, out->dropped);
}

static void derive(tr_walk *w, uint32_t recomputed) {
    mark_adds(w->graph, w->graph->nodes, w->graph->node_count);
    mark_adds(w->graph, w->graph->asked, w->graph->asked_count);
    run(w);
    if (w->graph->err.status != TR_OK) {
        return;
    }
    w->weights_later = w->weights_later && !tr__walk_weights_read_data(w);
    if (!begin_again(w, recomputed)) {
        tr_graph_fail(w->graph, TR_MEMORY, "no memory to derive a unit's backward");
        return;
    }
    run(w);
    for (size_t v = 0; v < w->forward_count; v++) {
        if (w->out->saved[v]) {
            need_node(w, tr__walk_info(w, (tr_value)v)->node);
        }
    }
    if (!tr__walk_part_weights(w) || !tr__walk_hide_exchanges(w)) {
        tr_graph_fail(w->graph, TR_MEMORY, "no memory to derive a unit's backward");
    }
}

// Else nobody waits for what the unit's backward makes.
static bool hands_on(const tr_graph *graph) {
    bool some = false;
    for (int i = 0; i < graph->input_count; i++) {
        some = some || !graph->input_fixed[i];
    }
    return some;
}

tr_status tr__derive(tr_graph *graph, tr_derive_request request, tr_derivation *out,
                     tr_error *err) {
    tr_walk w = {.graph = graph,
                 .out = out,
                 .forward_count = graph->value_count,
                 .weights_later = request.weights_later && hands_on(graph) &&
                                  graph->segment_count == 1,
                 .params_come = request.params_come};
    *out = (tr_derivation){.forward_values = w.forward_count};
    if (!allocate(&w)) {
        tr_graph_fail(graph, TR_MEMORY, "no memory to derive a unit's backward");
    } else {
        derive(&w, request.recomputed);
    }
    tr__free(w.wants);
    tr__free(w.consumed);
    tr__free(w.storage);
    return tr_graph_status(graph, err);
}

void tr__derivation_clear(tr_derivation *derivation) {
    if (derivation) {
        tr__free(derivation->backward);
        tr__free(derivation->read);
        tr__free(derivation->dropped);
        tr__free(derivation->saved);
        tr__free(derivation->recomputed);
        tr__free(derivation->needed);
        *derivation = (tr_derivation){0};
    }
}
