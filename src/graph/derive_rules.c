#include "graph/derive_walk.h"

#include <string.h>

// looked_at: more of it than its shape.
static tr_value rule_input(tr_walk *w, const tr_call *node, tr_ref ref, bool looked_at,
                           tr_value *temp) {
    switch (ref.kind) {
    case TR_REF_IN:
        if (looked_at) {
            tr__walk_need(w, node->in[ref.index], node->segment);
        }
        return node->in[ref.index];
    case TR_REF_OUT:
        tr__walk_need(w, node->out[ref.index], node->segment);
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
static bool wants_input(tr_walk *w, const tr_call *node, int i) {
    tr_value value = node->in[i];
    return value != TR_NO_VALUE && w->wants[value] && !(node->op->no_gradient >> i & 1);
}

static tr_value rule_result(tr_walk *w, const tr_call *node, const tr_rule *rule,
                            tr_ref ref, tr_value *temp, bool *accumulate, bool *first) {
    *accumulate = *first = false;
    switch (ref.kind) {
    case TR_REF_GRAD_IN:
        return wants_input(w, node, ref.index)
                   ? tr__walk_contribute(w, node->in[ref.index], node->segment,
                                         accumulate, first)
                   : TR_NO_VALUE;
    case TR_REF_GRAD_OUT:
        return tr__walk_contribute(w, node->out[ref.index], node->segment, accumulate,
                                   first);
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

static void apply_copy(tr_walk *w, const tr_call *node, const tr_rule *rule) {
    bool accumulate, first;
    tr_value from = w->storage[node->out[rule->in[0].index]];
    tr_value target = node->in[rule->out[0].index];
    if (from == TR_NO_VALUE || target == TR_NO_VALUE || !w->wants[target]) {
        return;
    }
    // What is collected over micro-batches lies apart from what each has of its own.
    if (w->storage[target] == TR_NO_VALUE && !tr__walk_collected(w, target) &&
        !tr__walk_collected(w, (tr_value)tr__walk_info(w, from)->index)) {
        w->storage[target] = from;
        return;
    }
    tr_value to = tr__walk_contribute(w, target, node->segment, &accumulate, &first);
    tr__walk_copy(w, from, to, accumulate, first, node->segment);
}

// A rule of which nobody wants a result asks for no operands either.
static bool wants_rule(tr_walk *w, const tr_call *node, const tr_rule *rule) {
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        tr_ref_kind kind = rule->out[i].kind;
        bool is_input = kind == TR_REF_GRAD_IN;
        if (is_input ? wants_input(w, node, rule->out[i].index) : kind != TR_REF_NONE) {
            return true;
        }
    }
    return false;
}

// What ranks exchange is a tensor of its own, of the output's type: it is added to what
// is there only behind the exchange.
static void add_exchanged(tr_walk *w, const tr_call *node, const tr_rule *rule,
                          tr_call *call) {
    bool accumulate, first;
    tr_value target = node->in[rule->out[0].index];
    tr_value sum = tr__walk_gradient(w, node->out[0]);
    tr__walk_info(w, sum)->desc.shape = tr__walk_info(w, target)->desc.shape;
    call->out[0] = sum;
    call->out_count = 1;
    tr__walk_emit(w, call);
    tr_value to = tr__walk_contribute(w, target, node->segment, &accumulate, &first);
    tr__walk_copy(w, sum, to, accumulate, first, node->segment);
}

// Would a rule whose result ranks sum add it to what is there, or to what is collected
// over micro-batches?
static bool adds_exchanged(tr_walk *w, const tr_call *node, const tr_rule *rule) {
    tr_value target = rule->out[0].kind == TR_REF_GRAD_IN ? node->in[rule->out[0].index]
                                                          : TR_NO_VALUE;
    if (!(rule->op->flags & TR_OP_EXCHANGE) || target == TR_NO_VALUE) {
        return false;
    }
    return tr__walk_collected(w, target) || w->storage[target] != TR_NO_VALUE;
}

// Somewhere else, as gradients of parameters are made.
static tr_value beside(tr_walk *w, tr_value gradient) {
    tr_tensor_desc desc = tr__walk_info(w, gradient)->desc;
    return tr__graph_value(w->graph,
                           (tr_value_info){.desc = desc, .kind = TR_VALUE_TEMP});
}

// Gradients of parameters that a call makes beside another one's (the gains of a norm)
// wait for the rest of the unit's, and are added with these. So all that is made of a
// unit's parameters on a micro-batch is made at one time.
static void emit_rule(tr_walk *w, const tr_call *call) {
    tr_call sooner = *call;
    bool apart = w->weights_later && tr__walk_makes_others(w, call);
    for (int i = 0; apart && i < call->out_count; i++) {
        if (call->out[i] != TR_NO_VALUE && tr__walk_is_of_param(w, call->out[i])) {
            sooner.out[i] = beside(w, call->out[i]);
            sooner.accumulate &= ~(UINT32_C(1) << i);
            sooner.first &= ~(UINT32_C(1) << i);
        }
    }
    tr__walk_emit(w, &sooner);
    for (int i = 0; i < call->out_count; i++) {
        if (sooner.out[i] != call->out[i]) {
            tr__walk_copy(w, sooner.out[i], call->out[i], call->accumulate >> i & 1,
                          call->first >> i & 1, call->segment);
        }
    }
}

static void apply_rule(tr_walk *w, const tr_call *node, const tr_rule *rule,
                       tr_value *temp) {
    tr_call call = {.op = rule->op, .segment = node->segment};
    if (!wants_rule(w, node, rule)) {
        return;
    }
    memcpy(call.attr, rule->attr, sizeof call.attr);
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        bool looked_at = !(rule->op->shape_only >> i & 1);
        call.in[i] = rule_input(w, node, rule->in[i], looked_at, temp);
        call.in_count = rule->in[i].kind == TR_REF_NONE ? call.in_count : i + 1;
    }
    if (adds_exchanged(w, node, rule)) {
        add_exchanged(w, node, rule, &call);
        return;
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        bool accumulate, first;
        call.out[i] =
            rule_result(w, node, rule, rule->out[i], temp, &accumulate, &first);
        call.out_count = rule->out[i].kind == TR_REF_NONE ? call.out_count : i + 1;
        call.accumulate |= (uint32_t)accumulate << i;
        call.first |= (uint32_t)first << i;
    }
    emit_rule(w, &call);
}

static bool has_gradient(tr_walk *w, const tr_call *node) {
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

void tr__walk_node(tr_walk *w, size_t index) {
    tr_call node = w->graph->nodes[index]; // a copy: the table may move
    tr_node_view view;
    tr_rule rules[TR_OP_RULES_MAX];
    tr_value temp[TR_OP_TEMPS_MAX] = {TR_NO_VALUE, TR_NO_VALUE, TR_NO_VALUE};
    if (!has_gradient(w, &node)) {
        return;
    }
    if (!node.op->backward) {
        tr_graph_fail(w->graph, TR_INTERNAL, "op %s has no backward", node.op->name);
        return;
    }
    tr__node_view(w->graph, &node, &view);
    for (int i = 0; i < node.in_count; i++) {
        view.node.unwanted |= (uint32_t)!wants_input(w, &node, i) << i;
    }
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
