#include "graph/split.h"

#include "base/memory.h"
#include "graph/splitter.h"

#include <string.h>

// Are the node's inputs, but for parameters, as the way needs them?
static bool takes(tr_splitter *s, const tr_call *node, const tr_split *way) {
    for (int i = 0; i < node->in_count; i++) {
        tr_value value = node->in[i];
        if (value == TR_NO_VALUE || tr__split_is_param(s, value)) {
            continue;
        }
        int f = s->family_of[value];
        bool fits = way->in[i].dim < 0
                        ? f < 0
                        : f >= 0 && s->dim_of[value] == way->in[i].dim &&
                              tr__split_agrees(&s->families[f], &way->in[i]);
        if (!fits || way->in[i].tokens) {
            return false;
        }
    }
    return true;
}

// ---- runs: a value that is cut is taken by all that read it

static bool can_be_cut(const tr_splitter *s, tr_value value) {
    const tr_value_info *info = tr__split_info(s, value);
    return info->kind == TR_VALUE_NODE && !info->wave && !info->sums &&
           !tr__graph_hands_on(s->graph, value);
}

static bool follow(tr_splitter *s, tr_value value);

// The node is split in this way; what reads its outputs follows.
static bool take_way(tr_splitter *s, size_t n, const tr_split *way) {
    const tr_call *node = &s->graph->nodes[n];
    int open = tr__split_open_family(s, node, way), join = s->join;
    s->join = -1;
    s->is_split[n] = true;
    s->splits[n] = *way;
    s->run[s->run_count++] = (int)n;
    for (int i = 0; i < node->out_count; i++) {
        const tr_cut *cut = &way->out[i];
        if (node->out[i] == TR_NO_VALUE || cut->dim < 0) {
            continue;
        }
        if (!can_be_cut(s, node->out[i])) {
            return false;
        }
        int joins = cut->blocks > 0 ? -1 : open >= 0 ? open : join;
        s->family_of[node->out[i]] = joins >= 0 ? joins : tr__split_new_family(s, cut);
        s->dim_of[node->out[i]] = cut->dim;
    }
    for (int i = 0; i < node->out_count; i++) {
        if (node->out[i] != TR_NO_VALUE && way->out[i].dim >= 0 &&
            !follow(s, node->out[i])) {
            return false;
        }
    }
    return true;
}

static bool reads(const tr_call *node, tr_value value) {
    for (int i = 0; i < node->in_count; i++) {
        if (node->in[i] == value) {
            return true;
        }
    }
    return false;
}

// Does the way cut a parameter of the node, and begin a run: from whole tensors to one
// that is cut, or to whole ones again?
static bool opens(const tr_splitter *s, const tr_call *node, const tr_split *way) {
    bool cuts = false, makes = false;
    for (int i = 0; i < node->in_count; i++) {
        bool param = node->in[i] != TR_NO_VALUE && tr__split_is_param(s, node->in[i]);
        cuts = cuts || (param && way->in[i].dim >= 0);
    }
    for (int i = 0; i < node->out_count; i++) {
        makes = makes || way->out[i].dim >= 0;
    }
    return cuts && (makes || way->partial || way->expands);
}

// What gives the value can be split so that it is cut: another product, of an adapter
// beside a layer's own. family: in which it is cut, -1: in one of its own.
static bool cut_giver(tr_splitter *s, tr_value value, int family) {
    const tr_value_info *info = tr__split_info(s, value);
    tr_split way;
    if (info->kind != TR_VALUE_NODE || s->is_split[info->node]) {
        return false;
    }
    size_t n = (size_t)info->node;
    const tr_call *node = &s->graph->nodes[n];
    for (int w = 0; tr__split_way(s, node, w, &way); w++) {
        if (opens(s, node, &way) && way.out[0].dim >= 0 && takes(s, node, &way)) {
            s->join = family;
            return take_way(s, n, &way);
        }
    }
    return false;
}

// The way takes a value that is cut beside others that have to be cut, too, and are not
// yet.
static bool cut_others(tr_splitter *s, const tr_call *node, const tr_split *way) {
    int open = tr__split_open_family(s, node, way);
    for (int i = 0; i < node->in_count; i++) {
        tr_value value = node->in[i];
        if (value != TR_NO_VALUE && !tr__split_is_param(s, value) &&
            way->in[i].dim >= 0 && !way->in[i].tokens && s->family_of[value] < 0 &&
            !cut_giver(s, value, way->in[i].blocks == 0 ? open : -1)) {
            return false;
        }
    }
    return takes(s, node, way);
}

// Every node that reads the value, which is cut, can do with that.
static bool follow(tr_splitter *s, tr_value value) {
    for (size_t n = 0; n < s->graph->node_count; n++) {
        const tr_call *node = &s->graph->nodes[n];
        tr_split way;
        bool good =
            !reads(node, value) || (s->is_split[n] && takes(s, node, &s->splits[n]));
        for (int w = 0; !good && tr__split_way(s, node, w, &way); w++) {
            bool fits = takes(s, node, &way) || cut_others(s, node, &way);
            // What gives another input may have split the node on its way here.
            good = fits && (s->is_split[n] || take_way(s, n, &way));
            if (!good && s->is_split[n]) {
                return false; // the run as a whole is given up
            }
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

// Is the node split so that it cuts the parameter, which is its input i, along the
// dimension? Else it is split so, if it can be.
static bool cuts_alike(tr_splitter *s, size_t n, int i, int dim) {
    const tr_call *node = &s->graph->nodes[n];
    tr_split way;
    for (int w = 0; !s->is_split[n] && tr__split_way(s, node, w, &way); w++) {
        if (way.in[i].dim == dim && takes(s, node, &way)) {
            return take_way(s, n, &way);
        }
    }
    return s->is_split[n] && s->splits[n].in[i].dim == dim;
}

// All nodes that read a parameter which the run cuts.
static bool follow_params(tr_splitter *s) {
    for (int r = 0; r < s->run_count; r++) {
        const tr_call *node = &s->graph->nodes[s->run[r]];
        for (int i = 0; i < node->in_count; i++) {
            int dim = s->splits[s->run[r]].in[i].dim;
            tr_value value = node->in[i];
            bool cut = value != TR_NO_VALUE && dim >= 0 && tr__split_is_param(s, value);
            for (size_t n = 0; cut && n < s->graph->node_count; n++) {
                const tr_call *other = &s->graph->nodes[n];
                for (int k = 0; k < other->in_count; k++) {
                    if (other->in[k] == value && !cuts_alike(s, n, k, dim)) {
                        return false;
                    }
                }
            }
        }
    }
    return true;
}

static void give_up(tr_splitter *s) {
    for (int r = 0; r < s->run_count; r++) {
        const tr_call *node = &s->graph->nodes[s->run[r]];
        s->is_split[s->run[r]] = false;
        for (int i = 0; i < node->out_count; i++) {
            if (node->out[i] != TR_NO_VALUE) {
                s->family_of[node->out[i]] = -1;
            }
        }
    }
    s->family_count = s->family_before;
}

static void try_from(tr_splitter *s, size_t n) {
    const tr_call *node = &s->graph->nodes[n];
    tr_split way;
    for (int w = 0; !s->is_split[n] && tr__split_way(s, node, w, &way); w++) {
        s->run_count = 0;
        s->family_before = s->family_count;
        if (!way.follows && opens(s, node, &way) && takes(s, node, &way) &&
            !(take_way(s, n, &way) && follow_params(s) && tr__split_settle_run(s))) {
            give_up(s);
        }
    }
}

static bool allocate(tr_splitter *s) {
    size_t nodes = s->graph->node_count, values = s->graph->value_count;
    s->is_split = tr__calloc(nodes, sizeof *s->is_split);
    s->splits = tr__calloc(nodes, sizeof *s->splits);
    s->run = tr__calloc(nodes, sizeof *s->run);
    s->family_of = tr__calloc(values, sizeof *s->family_of);
    s->dim_of = tr__calloc(values, sizeof *s->dim_of);
    s->families = tr__calloc(values, sizeof *s->families);
    s->by_tokens = tr__calloc(nodes, sizeof *s->by_tokens);
    s->cut_tokens = tr__calloc(values, sizeof *s->cut_tokens);
    s->shared = tr__calloc(values, sizeof *s->shared);
    s->whole = tr__calloc(values, sizeof *s->whole);
    s->part = tr__calloc(values, sizeof *s->part);
    bool good = s->is_split && s->splits && s->run && s->family_of && s->dim_of &&
                s->families && s->by_tokens && s->cut_tokens && s->shared && s->whole &&
                s->part;
    for (size_t v = 0; good && v < values; v++) {
        s->family_of[v] = -1;
        s->shared[v] = s->whole[v] = s->part[v] = TR_NO_VALUE;
    }
    return good;
}

tr_status tr__graph_split(tr_graph *graph, const tr_rewrite_walk *walk, bool tied,
                          tr_error *err) {
    tr_splitter s = {.graph = graph, .walk = walk, .tied = tied, .join = -1};
    if (graph->err.status != TR_OK || !allocate(&s)) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's graph");
    } else {
        for (size_t n = 0; n < graph->node_count; n++) {
            try_from(&s, n);
        }
        if (walk->tokens > 0) {
            tr__split_find_tokens(&s);
        }
        tr__split_write(&s);
    }
    tr__free(s.is_split);
    tr__free(s.splits);
    tr__free(s.run);
    tr__free(s.family_of);
    tr__free(s.dim_of);
    tr__free(s.families);
    tr__free(s.by_tokens);
    tr__free(s.cut_tokens);
    tr__free(s.shared);
    tr__free(s.whole);
    tr__free(s.part);
    return tr_graph_status(graph, err);
}
