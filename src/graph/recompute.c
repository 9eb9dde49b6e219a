#include "graph/recompute.h"

#include "base/memory.h"

#include <string.h>

void tr__node_view(const tr_graph *graph, const tr_call *node, tr_node_view *view) {
    for (int i = 0; i < node->in_count; i++) {
        view->in[i] = tr_graph_desc(graph, node->in[i]);
    }
    for (int i = 0; i < node->out_count; i++) {
        view->out[i] = tr_graph_desc(graph, node->out[i]);
    }
    view->node = (tr_op_node){.op = node->op,
                              .attr = node->attr,
                              .in_count = node->in_count,
                              .out_count = node->out_count,
                              .in = view->in,
                              .out = view->out};
}

// ---- classes

static bool reads(const tr_call *node, tr_value value) {
    for (int i = 0; i < node->in_count; i++) {
        if (node->in[i] == value) {
            return true;
        }
    }
    return false;
}

// What passes from one segment to the next is kept in any case.
static bool crosses(const tr_graph *graph, tr_value value) {
    for (size_t n = 0; n < graph->node_count; n++) {
        const tr_call *node = &graph->nodes[n];
        if (node->segment != graph->values[value].segment && reads(node, value)) {
            return true;
        }
    }
    return false;
}

// Is the value there in the backward whatever is dropped? What a wave adds up, and what
// a loss does, is there once and not to be made twice.
static bool is_there(const tr_graph *graph, tr_value value) {
    const tr_value_info *info = &graph->values[value];
    return info->kind != TR_VALUE_NODE || info->wave || info->sums ||
           tr__graph_hands_on(graph, value) || crosses(graph, value);
}

static bool feeds_activations_only(const tr_graph *graph, tr_value value) {
    int readers = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        const tr_call *node = &graph->nodes[n];
        if (reads(node, value)) {
            readers++;
            if (node->op->recompute_class[0] != TR_RECOMPUTE_ACTIVATION) {
                return false;
            }
        }
    }
    return readers > 0;
}

uint32_t tr__recompute_classes(const tr_graph *graph, tr_value value) {
    if (is_there(graph, value)) {
        return TR_RECOMPUTE_NEVER;
    }
    const tr_value_info *info = &graph->values[value];
    const tr_op *op = graph->nodes[info->node].op;
    uint32_t classes = op->recompute_class[info->index];
    if (op->wave_outputs || (op->flags & TR_OP_LOSS)) {
        return TR_RECOMPUTE_NEVER;
    }
    if (info->late) {
        return TR_RECOMPUTE_ALWAYS;
    }
    if (classes == TR_RECOMPUTE_PRODUCT && feeds_activations_only(graph, value)) {
        classes |= TR_RECOMPUTE_PRE_ACTIVATION;
    }
    return classes;
}

// ---- the call

bool tr__recompute_rule(const tr_graph *graph, tr_value value, tr_call *call) {
    const tr_call *node = &graph->nodes[graph->values[value].node];
    tr_node_view view;
    tr_rule rule = {0};
    bool gives = false;
    tr__node_view(graph, node, &view);
    if (!node->op->recompute || !node->op->recompute(&view.node, &rule)) {
        return false;
    }
    *call = (tr_call){.op = rule.op, .segment = node->segment};
    memcpy(call->attr, rule.attr, sizeof call->attr);
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        tr_ref ref = rule.in[i];
        call->in[i] = ref.kind == TR_REF_IN    ? node->in[ref.index]
                      : ref.kind == TR_REF_OUT ? node->out[ref.index]
                                               : TR_NO_VALUE;
        call->in_count = ref.kind == TR_REF_NONE ? call->in_count : i + 1;
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        tr_ref ref = rule.out[i];
        call->out[i] = ref.kind == TR_REF_OUT ? node->out[ref.index] : TR_NO_VALUE;
        call->out_count = ref.kind == TR_REF_NONE ? call->out_count : i + 1;
        gives = gives || call->out[i] == value;
    }
    return gives;
}

// Does the rule read another result of the node that is dropped, too?
static bool reads_dropped(const tr_graph *graph, const bool *dropped, tr_value value,
                          const tr_call *rule) {
    const tr_call *node = &graph->nodes[graph->values[value].node];
    for (int i = 0; i < node->out_count; i++) {
        if (dropped[node->out[i]] && reads(rule, node->out[i])) {
            return true;
        }
    }
    return false;
}

void tr__recompute_call(const tr_graph *graph, const bool *dropped, tr_value value,
                        tr_call *call) {
    if (!tr__recompute_rule(graph, value, call) ||
        reads_dropped(graph, dropped, value, call)) {
        *call = graph->nodes[graph->values[value].node];
        call->accumulate = call->first = 0;
    }
    for (int i = 0; i < call->out_count; i++) {
        bool wanted = call->out[i] != TR_NO_VALUE && dropped[call->out[i]];
        call->out[i] = wanted ? call->out[i] : TR_NO_VALUE;
    }
}

// ---- the choice

typedef struct chooser {
    const tr_graph *graph;
    const bool *read;
    bool *dropped;
    size_t values;
    bool *seen; // [values] in one look at what a value is made from
} chooser;

// Bytes for one sample.
static int64_t sample_bytes(const chooser *c, tr_value value) {
    tr_tensor_desc desc = tr_graph_desc(c->graph, value);
    for (int i = 0; i < desc.shape.rank; i++) {
        desc.shape.dim[i] = desc.shape.dim[i] == TR_BATCH ? 1 : desc.shape.dim[i];
    }
    return tr_tensor_bytes(desc);
}

// What is handed in or on, and is not read otherwise, need not stay so long.
static bool may_go(const chooser *c, tr_value value) {
    const tr_value_info *info = &c->graph->values[value];
    return info->kind == TR_VALUE_INPUT || tr__graph_hands_on(c->graph, value) ||
           !is_there(c->graph, value);
}

// Bytes that have to be kept, and are not yet, to make the value again.
static int64_t newly_kept(const chooser *c, tr_value value) {
    tr_call call;
    int64_t bytes = 0;
    tr__recompute_call(c->graph, c->dropped, value, &call);
    for (int i = 0; i < call.in_count; i++) {
        tr_value from = call.in[i];
        if (from == TR_NO_VALUE || c->seen[from] || !may_go(c, from)) {
            continue;
        }
        c->seen[from] = true;
        if (c->dropped[from]) {
            bytes += newly_kept(c, from);
        } else if (!c->read[from]) {
            bytes += sample_bytes(c, from);
        }
    }
    return bytes;
}

// Keeps the value, and what is recomputed with it, unless to drop them saves
// memory.
static bool keep_unless_it_pays(const chooser *c, tr_value value) {
    tr_call call;
    int64_t saved = 0;
    tr__recompute_call(c->graph, c->dropped, value, &call);
    for (int i = 0; i < call.out_count; i++) {
        tr_value out = call.out[i];
        saved += out != TR_NO_VALUE && c->read[out] ? sample_bytes(c, out) : 0;
    }
    memset(c->seen, 0, c->values * sizeof *c->seen);
    if (newly_kept(c, value) < saved) {
        return false;
    }
    for (int i = 0; i < call.out_count; i++) {
        if (call.out[i] != TR_NO_VALUE) {
            c->dropped[call.out[i]] = false;
        }
    }
    return true;
}

bool tr__recompute_choose(const tr_graph *graph, size_t values, const bool *read,
                          uint32_t classes, bool *dropped) {
    chooser c = {.graph = graph, .read = read, .dropped = dropped, .values = values};
    bool changed = true;
    c.seen = tr__calloc(values, sizeof *c.seen);
    if (!c.seen) {
        return false;
    }
    for (size_t v = 0; v < values; v++) {
        uint32_t own = tr__recompute_classes(graph, (tr_value)v);
        dropped[v] = (own & (classes | TR_RECOMPUTE_ALWAYS)) != 0;
    }
    while (changed) { // what stays after all may be what another is made from
        changed = false;
        for (size_t v = 0; v < values; v++) {
            if (read[v] && dropped[v]) {
                changed = keep_unless_it_pays(&c, (tr_value)v) || changed;
            }
        }
    }
    tr__free(c.seen);
    return true;
}
