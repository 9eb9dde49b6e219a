#include "graph/derive.h"

#include "base/memory.h"
#include "ops/copy/copy.h"

#include <string.h>

// What the walk knows about the forward's values, while it goes.
typedef struct walk {
    tr_graph *graph;
    tr_derivation *out;
    size_t forward_count; // values of the forward; derived ones come after
    bool *wants;          // [forward] depends on a parameter or an input
    bool *consumed;       // [forward] its gradient has been passed on
    tr_value *storage;    // [forward] where its gradient lies, TR_NO_VALUE: none yet
    bool *node_again;     // [nodes] its recompute rule is in the backward already
} walk;

static tr_value_info *info(walk *w, tr_value value) {
    return &w->graph->values[value];
}

static bool is_output(const tr_graph *graph, tr_value value, int *index) {
    for (int i = 0; i < graph->output_count; i++) {
        if (graph->output[i] == value) {
            *index = i;
            return true;
        }
    }
    return false;
}

static void emit(walk *w, const tr_call *call) {
    tr_derivation *out = w->out;
    if (!tr__grow((void **)&out->backward, &out->backward_capacity,
                  out->backward_count + 1, sizeof *out->backward)) {
        tr_graph_fail(w->graph, TR_MEMORY, "no memory for a unit's backward");
        return;
    }
    out->backward[out->backward_count++] = *call;
}

static tr_value gradient_of(walk *w, tr_value value) {
    return tr__graph_value(w->graph, (tr_value_info){.desc = info(w, value)->desc,
                                                     .kind = TR_VALUE_GRAD,
                                                     .index = (int)value});
}

static void copy(walk *w, tr_value from, tr_value to, bool accumulate, bool first,
                 int segment) {
    tr_call call = {.op = &tr__op_copy,
                    .in_count = 1,
                    .out_count = 1,
                    .in = {from},
                    .out = {to},
                    .accumulate = accumulate,
                    .first = first,
                    .segment = segment};
    emit(w, &call);
}

static bool is_collected(walk *w, tr_value value) {
    return info(w, value)->kind == TR_VALUE_PARAM || info(w, value)->wave;
}

// Does the gradient of another value, not passed on yet, lie in the same storage?
static bool is_shared(walk *w, tr_value value) {
    for (size_t i = 0; i < w->forward_count; i++) {
        if ((tr_value)i != value && w->storage[i] == w->storage[value] &&
            !w->consumed[i]) {
            return true;
        }
    }
    return false;
}

// Storage for one more contribution to the gradient of `value`: `*accumulate` when
// there is one already, `*first` when the step decides.
static tr_value contribute(walk *w, tr_value value, int segment, bool *accumulate,
                           bool *first) {
    *accumulate = *first = false;
    if (w->storage[value] == TR_NO_VALUE) {
        w->storage[value] = gradient_of(w, value);
        *first = is_collected(w, value);
        return w->storage[value];
    }
    if (!is_collected(w, value) && is_shared(w, value)) {
        tr_value own = gradient_of(w, value);
        copy(w, w->storage[value], own, false, false, segment);
        w->storage[value] = own;
    }
    *accumulate = true;
    return w->storage[value];
}

// A node as its op's rules see it.
typedef struct node_view {
    tr_op_node node;
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
} node_view;

static void view_node(walk *w, const tr_call *node, node_view *view) {
    for (int i = 0; i < node->in_count; i++) {
        view->in[i] = tr_graph_desc(w->graph, node->in[i]);
    }
    for (int i = 0; i < node->out_count; i++) {
        view->out[i] = tr_graph_desc(w->graph, node->out[i]);
    }
    view->node = (tr_op_node){node->op,        node->attr, node->in_count,
                              node->out_count, view->in,   view->out};
}

static void need(walk *w, tr_value value, int segment);

// Runs the recompute rule of a node in the backward, unless it has been. false: the
// rule does not give this value.
static bool recompute(walk *w, tr_value value, int segment) {
    int node_index = info(w, value)->node, ignored;
    tr_call node = w->graph->nodes[node_index];
    node_view view;
    tr_rule rule = {0};
    view_node(w, &node, &view);
    if (!node.op->recompute || !node.op->recompute(&view.node, &rule)) {
        return false;
    }
    tr_call call = {.op = rule.op, .segment = segment};
    bool gives = false;
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        tr_value made =
            rule.out[i].kind == TR_REF_OUT ? node.out[rule.out[i].index] : TR_NO_VALUE;
        gives = gives || made == value;
        bool kept = made == TR_NO_VALUE || w->out->saved[made] ||
                    is_output(w->graph, made, &ignored);
        call.out[i] = kept ? TR_NO_VALUE : made;
        call.out_count = rule.out[i].kind == TR_REF_NONE ? call.out_count : i + 1;
    }
    if (!gives || w->node_again[node_index]) {
        return gives;
    }
    w->node_again[node_index] = true;
    memcpy(call.attr, rule.attr, sizeof call.attr);
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        tr_ref ref = rule.in[i];
        call.in[i] = ref.kind == TR_REF_IN    ? node.in[ref.index]
                     : ref.kind == TR_REF_OUT ? node.out[ref.index]
                                              : TR_NO_VALUE;
        if (ref.kind != TR_REF_NONE) {
            call.in_count = i + 1;
            need(w, call.in[i], segment);
        }
    }
    for (int i = 0; i < call.out_count; i++) {
        if (call.out[i] != TR_NO_VALUE) {
            w->out->recomputed[call.out[i]] = true;
        }
    }
    emit(w, &call);
    return true;
}

// Makes a forward value available to the backward call that is about to be emitted.
static void need(walk *w, tr_value value, int segment) {
    int index;
    if (value == TR_NO_VALUE || (size_t)value >= w->forward_count) {
        return;
    }
    const tr_value_info *what = info(w, value);
    if (what->kind == TR_VALUE_INPUT) {
        w->out->reads_input[what->index] = true;
    } else if (what->kind == TR_VALUE_NODE && !what->wave && !what->sums) {
        if (is_output(w->graph, value, &index)) {
            w->out->reads_output[index] = true;
        } else if (!w->out->saved[value] && !recompute(w, value, segment)) {
            w->out->saved[value] = true;
        }
    }
}

static tr_value rule_input(walk *w, const tr_call *node, tr_ref ref, tr_value *temp) {
    switch (ref.kind) {
    case TR_REF_IN:
        need(w, node->in[ref.index], node->segment);
        return node->in[ref.index];
    case TR_REF_OUT:
        need(w, node->out[ref.index], node->segment);
        return node->out[ref.index];
    case TR_REF_GRAD_IN:
        return w->storage[node->in[ref.index]];
    case TR_REF_GRAD_OUT:
        if (w->storage[node->out[ref.index]] == TR_NO_VALUE) {
            tr_graph_fail(w->graph, TR_INTERNAL,
                          "op %s: nothing depends on its output %d, so it has no "
                          "gradient to pass on",
                          node->op->name, ref.index);
        }
        return w->storage[node->out[ref.index]];
    case TR_REF_TEMP:
        return temp[ref.index];
    default:
        return TR_NO_VALUE;
    }
}

// Is the gradient of the node's input `i` of use to anybody?
static bool wants_input(walk *w, const tr_call *node, int i) {
    tr_value value = node->in[i];
    return value != TR_NO_VALUE && w->wants[value] && !(node->op->no_gradient >> i & 1);
}

static tr_value rule_result(walk *w, const tr_call *node, const tr_rule *rule,
                            tr_ref ref, tr_value *temp, bool *accumulate, bool *first) {
    *accumulate = *first = false;
    switch (ref.kind) {
    case TR_REF_GRAD_IN:
        return wants_input(w, node, ref.index)
                   ? contribute(w, node->in[ref.index], node->segment, accumulate,
                                first)
                   : TR_NO_VALUE;
    case TR_REF_GRAD_OUT:
        return contribute(w, node->out[ref.index], node->segment, accumulate, first);
    case TR_REF_OUT: // a loss's sums
        *accumulate = true;
        return node->out[ref.index];
    case TR_REF_TEMP:
        temp[ref.index] =
            tr__graph_value(w->graph, (tr_value_info){.desc = rule->temp[ref.index],
                                                      .kind = TR_VALUE_TEMP});
        return temp[ref.index];
    default:
        return TR_NO_VALUE;
    }
}

static void apply_copy(walk *w, const tr_call *node, const tr_rule *rule) {
    bool accumulate, first;
    tr_value from = w->storage[node->out[rule->in[0].index]];
    tr_value target = node->in[rule->out[0].index];
    if (from == TR_NO_VALUE || target == TR_NO_VALUE || !w->wants[target]) {
        return;
    }
    // What is collected over micro-batches lies apart from what each has of its own.
    if (w->storage[target] == TR_NO_VALUE && !is_collected(w, target) &&
        !is_collected(w, (tr_value)info(w, from)->index)) {
        w->storage[target] = from;
        return;
    }
    tr_value to = contribute(w, target, node->segment, &accumulate, &first);
    copy(w, from, to, accumulate, first, node->segment);
}

// A rule of which nobody wants a result asks for no operands either.
static bool wants_rule(walk *w, const tr_call *node, const tr_rule *rule) {
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        tr_ref_kind kind = rule->out[i].kind;
        bool is_input = kind == TR_REF_GRAD_IN;
        if (is_input ? wants_input(w, node, rule->out[i].index) : kind != TR_REF_NONE) {
            return true;
        }
    }
    return false;
}

static void apply_rule(walk *w, const tr_call *node, const tr_rule *rule,
                       tr_value *temp) {
    tr_call call = {.op = rule->op, .segment = node->segment};
    if (!wants_rule(w, node, rule)) {
        return;
    }
    memcpy(call.attr, rule->attr, sizeof call.attr);
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        call.in[i] = rule_input(w, node, rule->in[i], temp);
        call.in_count = rule->in[i].kind == TR_REF_NONE ? call.in_count : i + 1;
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        bool accumulate, first;
        call.out[i] =
            rule_result(w, node, rule, rule->out[i], temp, &accumulate, &first);
        call.out_count = rule->out[i].kind == TR_REF_NONE ? call.out_count : i + 1;
        call.accumulate |= (uint32_t)accumulate << i;
        call.first |= (uint32_t)first << i;
    }
    emit(w, &call);
}

static bool has_gradient(walk *w, const tr_call *node) {
    if (node->op->flags & TR_OP_LOSS) {
        return true;
    }
    for (int i = 0; i < node->out_count; i++) {
        if (w->storage[node->out[i]] != TR_NO_VALUE) {
            return true;
        }
    }
    return false;
}

static void walk_node(walk *w, size_t index) {
    tr_call node = w->graph->nodes[index]; // a copy: the table may move
    node_view view;
    tr_rule rules[TR_OP_RULES_MAX];
    tr_value temp[2] = {TR_NO_VALUE, TR_NO_VALUE};
    if (!has_gradient(w, &node)) {
        return;
    }
    if (!node.op->backward) {
        tr_graph_fail(w->graph, TR_INTERNAL, "op %s has no backward", node.op->name);
        return;
    }
    view_node(w, &node, &view);
    memset(rules, 0, sizeof rules);
    int count = node.op->backward(&view.node, rules);
    for (int i = 0; i < count; i++) {
        if (rules[i].op) {
            apply_rule(w, &node, &rules[i], temp);
        } else {
            apply_copy(w, &node, &rules[i]);
        }
    }
    for (int i = 0; i < node.out_count; i++) {
        w->consumed[node.out[i]] = true;
    }
}

// Which values have a gradient at all, and which pass from one segment to another.
static void look_forward(walk *w) {
    tr_graph *graph = w->graph;
    for (size_t v = 0; v < w->forward_count; v++) {
        tr_value_kind kind = graph->values[v].kind;
        w->wants[v] = kind == TR_VALUE_PARAM || kind == TR_VALUE_INPUT;
        w->storage[v] = TR_NO_VALUE;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        tr_call *node = &graph->nodes[n];
        bool wants = false;
        for (int i = 0; i < node->in_count; i++) {
            tr_value value = node->in[i];
            if (value == TR_NO_VALUE) {
                continue;
            }
            const tr_value_info *what = info(w, value);
            wants = wants || (w->wants[value] && !(node->op->no_gradient >> i & 1));
            int ignored;
            if (what->kind == TR_VALUE_NODE && !what->wave &&
                what->segment != node->segment && !is_output(graph, value, &ignored)) {
                w->out->saved[value] = true;
            }
        }
        for (int i = 0; i < node->out_count; i++) {
            const tr_value_info *what = info(w, node->out[i]);
            w->wants[node->out[i]] = wants;
            node->first |= (uint32_t)what->wave << i;
            node->accumulate |= (uint32_t)what->sums << i;
        }
    }
}

static void begin_with_outputs(walk *w) {
    for (int i = 0; i < w->graph->output_count; i++) {
        tr_value value = w->graph->output[i];
        w->out->output_grad[i] = TR_NO_VALUE;
        if (w->wants[value]) {
            w->storage[value] = w->out->output_grad[i] = gradient_of(w, value);
        }
    }
}

// May the gradient of input `i` be handed on from where it lies?
static bool is_free(walk *w, tr_value storage, int i) {
    tr_value of = (tr_value)info(w, storage)->index;
    bool free = !is_collected(w, of);
    for (int k = 0; k < w->graph->output_count; k++) {
        free = free && w->out->output_grad[k] != storage;
    }
    for (int k = 0; k < i; k++) {
        free = free && w->out->input_grad[k] != storage;
    }
    return free;
}

// The gradient of input `i` has to lie in storage of its own, or in that of the output.
static void end_with_input(walk *w, int i) {
    tr_graph *graph = w->graph;
    tr_value input = graph->input_value[i];
    tr_value storage = input == TR_NO_VALUE ? TR_NO_VALUE : w->storage[input];
    w->out->input_grad[i] = TR_NO_VALUE;
    if (storage == TR_NO_VALUE) {
        tr_graph_fail(graph, TR_INTERNAL,
                      "nothing that a unit makes depends on tensor %d of the unit "
                      "before",
                      i);
        return;
    }
    bool one_each = graph->given_count == 1 && graph->output_count == 1;
    if (is_free(w, storage, i)) {
        w->out->input_grad[i] = storage;
    } else if (one_each && storage == w->out->output_grad[0]) {
        w->out->input_grad[i] = storage;
        w->out->in_place = true;
    } else {
        tr_value own = gradient_of(w, input);
        copy(w, storage, own, false, false, 0);
        w->out->input_grad[i] = own;
    }
}

static void need_node(walk *w, int index) {
    if (w->out->needed[index]) {
        return;
    }
    w->out->needed[index] = true;
    const tr_call *node = &w->graph->nodes[index];
    for (int i = 0; i < node->in_count; i++) {
        if (node->in[i] == TR_NO_VALUE) {
            continue;
        }
        const tr_value_info *what = info(w, node->in[i]);
        if (what->kind == TR_VALUE_NODE && !what->wave) {
            need_node(w, what->node);
        }
    }
}

static bool allocate(walk *w, size_t nodes) {
    size_t values = w->forward_count;
    w->wants = tr__calloc(values, sizeof *w->wants);
    w->consumed = tr__calloc(values, sizeof *w->consumed);
    w->storage = tr__calloc(values, sizeof *w->storage);
    w->node_again = tr__calloc(nodes, sizeof *w->node_again);
    w->out->saved = tr__calloc(values, sizeof *w->out->saved);
    w->out->recomputed = tr__calloc(values, sizeof *w->out->recomputed);
    w->out->needed = tr__calloc(nodes, sizeof *w->out->needed);
    return w->wants && w->consumed && w->storage && w->node_again && w->out->saved &&
           w->out->recomputed && w->out->needed;
}

static void run(walk *w) {
    tr_graph *graph = w->graph;
    look_forward(w);
    begin_with_outputs(w);
    for (size_t n = graph->node_count; n-- > 0 && graph->err.status == TR_OK;) {
        walk_node(w, n);
    }
    for (int i = 0; i < graph->given_count && graph->err.status == TR_OK; i++) {
        end_with_input(w, i);
    }
    for (size_t v = 0; v < w->forward_count; v++) {
        if (w->out->saved[v]) {
            need_node(w, info(w, (tr_value)v)->node);
        }
    }
}

tr_status tr__derive(tr_graph *graph, tr_derivation *out, tr_error *err) {
    walk w = {.graph = graph, .out = out, .forward_count = graph->value_count};
    *out = (tr_derivation){0};
    if (!allocate(&w, graph->node_count)) {
        tr_graph_fail(graph, TR_MEMORY, "no memory to derive a unit's backward");
    } else {
        run(&w);
    }
    tr__free(w.wants);
    tr__free(w.consumed);
    tr__free(w.storage);
    tr__free(w.node_again);
    return tr_graph_status(graph, err);
}

void tr__derivation_clear(tr_derivation *derivation) {
    if (derivation) {
        tr__free(derivation->backward);
        tr__free(derivation->saved);
        tr__free(derivation->recomputed);
        tr__free(derivation->needed);
        *derivation = (tr_derivation){0};
    }
}
