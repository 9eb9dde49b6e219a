// What is cut along the tokens: of the nodes between runs those that have a way for it,
// what they make, and what runs end with.
#include "graph/splitter.h"

// Are all operands that the way cuts along the tokens such that they can be, and is
// there one?
static bool fits(const tr_splitter *s, const tr_call *node, const tr_split *way) {
    bool some = false;
    for (int i = 0; i < node->in_count + node->out_count; i++) {
        bool in = i < node->in_count;
        tr_value value = in ? node->in[i] : node->out[i - node->in_count];
        const tr_cut *cut = in ? &way->in[i] : &way->out[i - node->in_count];
        if (value != TR_NO_VALUE && cut->dim >= 0) {
            if (!cut->tokens || !tr__split_has_tokens(s, value)) {
                return false;
            }
            some = true;
        }
    }
    return some;
}

static bool find(const tr_splitter *s, const tr_call *node, tr_split *way) {
    bool found = false;
    for (int w = 0; !found && tr__split_way(s, node, w, way); w++) {
        found = fits(s, node, way);
    }
    return found;
}

static void look_at(tr_splitter *s, size_t n) {
    const tr_call *node = &s->graph->nodes[n];
    tr_split way;
    if (s->is_split[n]) {
        bool sum = s->splits[n].partial & 1;
        s->cut_tokens[node->out[0]] = sum && tr__split_has_tokens(s, node->out[0]);
    } else if (find(s, node, &way)) {
        s->by_tokens[n] = true;
        s->splits[n] = way;
        for (int i = 0; i < node->out_count; i++) {
            if (node->out[i] != TR_NO_VALUE) {
                s->cut_tokens[node->out[i]] = way.out[i].tokens;
            }
        }
    }
}

// ---- parameters

// Does the node make its tokens' part of the gradient of input i?
static bool makes_part(const tr_splitter *s, size_t n, int i) {
    const tr_call *node = &s->graph->nodes[n];
    const tr_split *way = &s->splits[n];
    return (s->by_tokens[n] && (way->partial_gradient >> i & 1)) ||
           (s->is_split[n] && way->added == i + 1 && s->cut_tokens[node->out[0]]);
}

// Do all nodes that read it?
static bool all_make_parts(const tr_splitter *s, tr_value value) {
    bool some = false;
    for (size_t n = 0; n < s->graph->node_count; n++) {
        const tr_call *node = &s->graph->nodes[n];
        for (int i = 0; i < node->in_count; i++) {
            if (node->in[i] == value && !makes_part(s, n, i)) {
                return false;
            }
            some = some || node->in[i] == value;
        }
    }
    return some;
}

static void note_summed(tr_splitter *s) {
    for (size_t p = 0; p < s->graph->param_count; p++) {
        tr_param_info *param = &s->graph->params[p];
        bool first = param->value != TR_NO_VALUE;
        param->summed = first ? !param->shared && !param->quantized &&
                                    all_make_parts(s, param->value)
                              : param[-1].summed;
    }
}

void tr__split_find_tokens(tr_splitter *s) {
    tr_graph *graph = s->graph;
    for (int i = 0; i < graph->input_count; i++) {
        if (graph->input_cut[i] && graph->input_value[i] != TR_NO_VALUE) {
            s->cut_tokens[graph->input_value[i]] = true;
        }
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        look_at(s, n);
    }
    note_summed(s);
}
