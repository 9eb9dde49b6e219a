#include "graph/split.h"

#include "base/memory.h"
#include "graph/recompute.h"
#include "ops/nn/all_reduce/all_reduce.h"
#include "ops/nn/bias/bias.h"
#include "ops/operand.h"

#include <string.h>

// Tensors that are cut alike, in blocks that one of the ops which work on them says.
typedef struct family {
    int dim, blocks; // blocks 0: nobody has said yet
    int64_t block[TR_CUT_BLOCKS_MAX];
} family;

typedef struct splitter {
    tr_graph *graph;
    const tr_rewrite_walk *walk;
    int64_t ranks, rank;
    bool tied;        // tensors that several units use may be cut
    bool *is_split;   // [nodes]
    tr_split *splits; // [nodes]
    int *family_of;   // [values] of families; -1: whole
    family *families; // [values]
    int family_count;
    tr_value *shared; // [values] the value whose gradient is summed; TR_NO_VALUE
    // The run that is tried: its nodes, and how many there were before it.
    int *run; // [nodes]
    int run_count;
    int family_before;
} splitter;

static tr_value_info *info_of(const splitter *s, tr_value value) {
    return &s->graph->values[value];
}

static bool is_param(const splitter *s, tr_value value) {
    return info_of(s, value)->kind == TR_VALUE_PARAM;
}

// ---- ways

// Inference puts others in the place of losses: none is shared.
static bool can_expand(const splitter *s, const tr_call *node) {
    return s->tied && tr__rewrite_row(s->walk->own, node->op, TR_REWRITE_SPLIT) != NULL;
}

static bool find_way(const splitter *s, const tr_call *node, int way, tr_split *out) {
    tr_node_view view;
    tr__node_view(s->graph, node, &view);
    *out = (tr_split){.added = 0};
    memcpy(out->attr, node->attr, sizeof out->attr);
    return node->op->split &&
           node->op->split(&view.node, way, s->ranks, s->rank, out) &&
           (!out->expands || can_expand(s, node));
}

static int new_family(splitter *s, const tr_cut *cut) {
    family *f = &s->families[s->family_count];
    *f = (family){.dim = cut->dim, .blocks = cut->blocks};
    memcpy(f->block, cut->block, sizeof f->block);
    return s->family_count++;
}

// The op says how the family is cut, or takes it as it is.
static bool agrees(family *f, const tr_cut *cut) {
    if (f->dim != cut->dim) {
        return false;
    }
    if (f->blocks == 0) {
        f->blocks = cut->blocks;
        memcpy(f->block, cut->block, sizeof f->block);
    }
    return cut->blocks == 0 ||
           (f->blocks == cut->blocks &&
            memcmp(f->block, cut->block, (size_t)f->blocks * sizeof *f->block) == 0);
}

// Of whatever blocks: the family of those cuts of a way that say none. -1: none yet.
static int open_family(const splitter *s, const tr_call *node, const tr_split *way) {
    for (int i = 0; i < node->in_count; i++) {
        tr_value value = node->in[i];
        if (value != TR_NO_VALUE && way->in[i].dim >= 0 && way->in[i].blocks == 0 &&
            !is_param(s, value)) {
            return s->family_of[value];
        }
    }
    return -1;
}

// Are the node's inputs, but for parameters, as the way needs them?
static bool takes(splitter *s, const tr_call *node, const tr_split *way) {
    for (int i = 0; i < node->in_count; i++) {
        tr_value value = node->in[i];
        if (value == TR_NO_VALUE || is_param(s, value)) {
            continue;
        }
        int f = s->family_of[value];
        bool fits =
            way->in[i].dim < 0 ? f < 0 : f >= 0 && agrees(&s->families[f], &way->in[i]);
        if (!fits) {
            return false;
        }
    }
    return true;
}

// ---- parameters

static bool is_read_elsewhere(const splitter *s, tr_value value, size_t node) {
    for (size_t n = 0; n < s->graph->node_count; n++) {
        for (int i = 0; i < s->graph->nodes[n].in_count && n != node; i++) {
            if (s->graph->nodes[n].in[i] == value) {
                return true;
            }
        }
    }
    return false;
}

// Parameters that lie in one tensor with the one of the value: [first, end).
static void stack_of(const splitter *s, tr_value value, size_t *first, size_t *end) {
    *first = (size_t)info_of(s, value)->index;
    *end = *first + 1;
    while (*end < s->graph->param_count && s->graph->params[*end].stacked) {
        (*end)++;
    }
}

// Dimensions differ between the tensors of a family that says no blocks: then each is
// one block, or, stacked, as many as there are parameters in it.
static bool can_cut(const splitter *s, tr_value value, size_t node, const tr_cut *cut,
                    family *f) {
    size_t first, end;
    stack_of(s, value, &first, &end);
    const tr_param_info *param = &s->graph->params[first];
    int64_t size = info_of(s, value)->desc.shape.dim[cut->dim];
    bool stacked = end - first > 1;
    if ((param->shared && !s->tied) || param->whole || param->quantized ||
        param->split || is_read_elsewhere(s, value, node) ||
        (stacked && cut->dim != 0)) {
        return false;
    }
    if (!stacked) {
        int64_t blocks = f && f->blocks > 0 ? f->blocks : 1;
        for (int b = 0; f && b < f->blocks; b++) {
            if (f->block[b] * blocks != size) {
                return false; // their parts would not be evenly apart
            }
        }
        return size % blocks == 0 && size / blocks >= s->ranks;
    }
    bool fits = end - first <= TR_CUT_BLOCKS_MAX &&
                (!f || f->blocks == 0 || (size_t)f->blocks == end - first);
    for (size_t p = first; p < end && fits && f && f->blocks == 0; p++) {
        f->block[p - first] = s->graph->params[p].shape.dim[0]; // it says the blocks
    }
    if (fits && f) {
        f->blocks = (int)(end - first);
    }
    for (size_t p = first; p < end && fits; p++) {
        int64_t rows = s->graph->params[p].shape.dim[0];
        fits = rows >= s->ranks && (!f || f->block[p - first] == rows);
    }
    return fits;
}

// ---- runs: a value that is cut is taken by all that read it

static bool can_be_cut(const splitter *s, tr_value value) {
    const tr_value_info *info = info_of(s, value);
    return info->kind == TR_VALUE_NODE && !info->wave && !info->sums &&
           !tr__graph_hands_on(s->graph, value);
}

static bool follow(splitter *s, tr_value value);

// The node is split in this way; what reads its outputs follows.
static bool take_way(splitter *s, size_t n, const tr_split *way) {
    const tr_call *node = &s->graph->nodes[n];
    int open = open_family(s, node, way);
    s->is_split[n] = true;
    s->splits[n] = *way;
    s->run[s->run_count++] = (int)n;
    for (int i = 0; i < node->out_count; i++) {
        const tr_cut *cut = &way->out[i];
        if (node->out[i] == TR_NO_VALUE || cut->dim < 0) {
            continue;
        }
        bool joins = cut->blocks == 0 && open >= 0 && s->families[open].dim == cut->dim;
        if (!can_be_cut(s, node->out[i])) {
            return false;
        }
        s->family_of[node->out[i]] = joins ? open : new_family(s, cut);
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

// Every node that reads the value, which is cut, can do with that.
static bool follow(splitter *s, tr_value value) {
    for (size_t n = 0; n < s->graph->node_count; n++) {
        const tr_call *node = &s->graph->nodes[n];
        tr_split way;
        bool good = s->is_split[n] || !reads(node, value);
        for (int w = 0; !good && find_way(s, node, w, &way); w++) {
            good = takes(s, node, &way) && take_way(s, n, &way);
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

static family *family_at(const splitter *s, const tr_call *node, const tr_split *way,
                         int input) {
    const tr_cut *cut = &way->in[input];
    int open = open_family(s, node, way);
    for (int i = 0; open < 0 && i < node->out_count; i++) {
        if (node->out[i] != TR_NO_VALUE && way->out[i].dim >= 0 &&
            way->out[i].blocks == 0) {
            open = s->family_of[node->out[i]];
        }
    }
    return cut->blocks == 0 && open >= 0 ? &s->families[open] : NULL;
}

// Has each rank some of every block of the value?
static bool has_parts(const splitter *s, tr_value value, const family *f) {
    bool has = info_of(s, value)->desc.shape.dim[f->dim] >= s->ranks;
    for (int b = 0; b < f->blocks; b++) {
        has = has && f->block[b] >= s->ranks;
    }
    return has;
}

// When the run is known, so are the blocks that its parameters and values are cut in.
static bool check_run(const splitter *s) {
    for (int r = 0; r < s->run_count; r++) {
        const tr_call *node = &s->graph->nodes[s->run[r]];
        const tr_split *way = &s->splits[s->run[r]];
        for (int i = 0; i < node->in_count; i++) {
            tr_value value = node->in[i];
            if (value != TR_NO_VALUE && is_param(s, value) && way->in[i].dim >= 0 &&
                !can_cut(s, value, (size_t)s->run[r], &way->in[i],
                         family_at(s, node, way, i))) {
                return false;
            }
        }
        for (int i = 0; i < node->out_count; i++) {
            int f = node->out[i] == TR_NO_VALUE ? -1 : s->family_of[node->out[i]];
            if (f >= 0 && !has_parts(s, node->out[i], &s->families[f])) {
                return false;
            }
        }
    }
    return true;
}

static void give_up(splitter *s) {
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

// Does the way cut a parameter of the node, and begin a run: from whole tensors to one
// that is cut, or to whole ones again?
static bool opens(const splitter *s, const tr_call *node, const tr_split *way) {
    bool cuts = false, makes = false;
    for (int i = 0; i < node->in_count; i++) {
        bool param = node->in[i] != TR_NO_VALUE && is_param(s, node->in[i]);
        cuts = cuts || (param && way->in[i].dim >= 0);
    }
    for (int i = 0; i < node->out_count; i++) {
        makes = makes || way->out[i].dim >= 0;
    }
    return cuts && (makes || way->partial || way->expands);
}

static void try_from(splitter *s, size_t n) {
    const tr_call *node = &s->graph->nodes[n];
    tr_split way;
    for (int w = 0; !s->is_split[n] && find_way(s, node, w, &way); w++) {
        s->run_count = 0;
        s->family_before = s->family_count;
        if (opens(s, node, &way) && takes(s, node, &way) &&
            !(take_way(s, n, &way) && check_run(s))) {
            give_up(s);
        }
    }
}

// ---- writing

static tr_value add_value(splitter *s, tr_tensor_desc desc) {
    return tr__graph_value(s->graph,
                           (tr_value_info){.desc = desc, .kind = TR_VALUE_NODE});
}

static void put_node(splitter *s, const tr_call *node) {
    tr_graph *graph = s->graph;
    if (!tr__grow((void **)&graph->nodes, &graph->node_capacity, graph->node_count + 1,
                  sizeof *graph->nodes)) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's graph");
        return;
    }
    graph->nodes[graph->node_count++] = *node;
}

// A node of its own in the place of `like`.
static void put_new(splitter *s, const tr_call *like, const tr_op *op,
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
    put_node(s, &call);
}

// The value itself, of which every rank makes a part of the gradient.
static tr_value share_value(splitter *s, const tr_call *like, tr_value value) {
    if (s->shared[value] == TR_NO_VALUE) {
        tr_value in[2] = {value, TR_NO_VALUE};
        s->shared[value] = add_value(s, info_of(s, value)->desc);
        put_new(s, like, &tr__op_all_reduce_gradient, in, s->shared[value]);
    }
    return s->shared[value];
}

static void cut_param(splitter *s, tr_param_info *param, int dim, int64_t blocks) {
    int64_t inner = 1, size = param->shape.dim[dim] / blocks;
    int64_t own = tr__cut_count(size, s->ranks, s->rank);
    for (int d = dim + 1; d < param->shape.rank; d++) {
        inner *= param->shape.dim[d];
    }
    param->split = true;
    param->whole_shape = param->shape;
    param->lies = (tr_stride){.first = tr__cut_first(size, s->ranks, s->rank) * inner,
                              .run = own * inner,
                              .every = size * inner};
    param->room = tr__cut_count(size, s->ranks, 0) * blocks * inner *
                  (tr_shape_count(param->whole_shape) / (size * blocks * inner));
    param->shape.dim[dim] = own * blocks;
}

static void cut_params(splitter *s, tr_value value, const tr_cut *cut,
                       const family *f) {
    size_t first, end;
    int64_t elements = 0, room = 0;
    bool uneven = false;
    stack_of(s, value, &first, &end);
    for (size_t p = first; p < end; p++) {
        int64_t blocks = end - first == 1 && f && f->blocks > 0 ? f->blocks : 1;
        tr_param_info *param = &s->graph->params[p];
        cut_param(s, param, cut->dim, blocks);
        elements += param->shape.dim[cut->dim];
        // One lies right behind the other: the last has the room that others leave.
        // Behind unequal parts lies an element more: so all ranks have something to
        // clear there, and their plans the same steps.
        room += param->room - tr_shape_count(param->shape);
        uneven = uneven || param->room * s->ranks != tr_shape_count(param->whole_shape);
        param->room = tr_shape_count(param->shape) + (p + 1 == end ? room + uneven : 0);
    }
    info_of(s, value)->desc.shape.dim[cut->dim] = elements;
}

// What the node works on, on this rank.
static void write_inputs(splitter *s, tr_call *node, const tr_split *way) {
    const tr_call old = *node;
    for (int i = 0; i < old.in_count; i++) {
        tr_value value = old.in[i];
        if (value == TR_NO_VALUE) {
            continue;
        }
        if (is_param(s, value) && way->in[i].dim >= 0) {
            cut_params(s, value, &way->in[i], family_at(s, &old, way, i));
        } else if (way->partial_gradient >> i & 1) {
            node->in[i] = share_value(s, &old, value);
        }
    }
}

// Sums over ranks, and what is added behind it.
static void write_sum(splitter *s, const tr_call *node, tr_value part, tr_value added,
                      tr_value whole) {
    tr_value sum = added == TR_NO_VALUE ? whole : add_value(s, info_of(s, whole)->desc);
    put_new(s, node, &tr__op_all_reduce, (tr_value[2]){part, TR_NO_VALUE}, sum);
    if (added != TR_NO_VALUE) {
        put_new(s, node, &tr__op_bias, (tr_value[2]){sum, added}, whole);
    }
}

static void write_split(splitter *s, const tr_call *old, const tr_split *way) {
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
        node.out[0] = add_value(s, info_of(s, whole)->desc);
    }
    put_node(s, &node);
    if (way->partial & 1) {
        write_sum(s, &node, node.out[0], added, whole);
    }
}

static int64_t elements_of(const splitter *s, const family *f, int64_t all) {
    int64_t own = f->blocks > 0 ? 0 : tr__cut_count(all, s->ranks, s->rank);
    for (int b = 0; b < f->blocks; b++) {
        own += tr__cut_count(f->block[b], s->ranks, s->rank);
    }
    return own;
}

static void cut_values(splitter *s, size_t count) {
    for (size_t v = 0; v < count; v++) {
        if (s->family_of[v] >= 0) {
            const family *f = &s->families[s->family_of[v]];
            int64_t *size = &info_of(s, (tr_value)v)->desc.shape.dim[f->dim];
            *size = elements_of(s, f, *size);
        }
    }
}

static void write(splitter *s) {
    tr_graph *graph = s->graph;
    tr_call *old = graph->nodes;
    size_t count = graph->node_count, values = graph->value_count;
    graph->nodes = NULL;
    graph->node_count = graph->node_capacity = 0;
    for (size_t n = 0; n < count && graph->err.status == TR_OK; n++) {
        if (s->is_split[n]) {
            write_split(s, &old[n], &s->splits[n]);
        } else {
            put_node(s, &old[n]);
        }
    }
    cut_values(s, values);
    tr__graph_number_nodes(graph);
    tr__free(old);
}

static bool allocate(splitter *s) {
    size_t nodes = s->graph->node_count, values = s->graph->value_count;
    s->is_split = tr__calloc(nodes, sizeof *s->is_split);
    s->splits = tr__calloc(nodes, sizeof *s->splits);
    s->run = tr__calloc(nodes, sizeof *s->run);
    s->family_of = tr__calloc(values, sizeof *s->family_of);
    s->families = tr__calloc(values, sizeof *s->families);
    s->shared = tr__calloc(values, sizeof *s->shared);
    bool good =
        s->is_split && s->splits && s->run && s->family_of && s->families && s->shared;
    for (size_t v = 0; good && v < values; v++) {
        s->family_of[v] = -1;
        s->shared[v] = TR_NO_VALUE;
    }
    return good;
}

tr_status tr__graph_split(tr_graph *graph, const tr_rewrite_walk *walk, bool tied,
                          tr_error *err) {
    splitter s = {.graph = graph,
                  .walk = walk,
                  .ranks = walk->ranks,
                  .rank = walk->rank,
                  .tied = tied};
    if (graph->err.status != TR_OK || !allocate(&s)) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's graph");
    } else {
        for (size_t n = 0; n < graph->node_count; n++) {
            try_from(&s, n);
        }
        write(&s);
    }
    tr__free(s.is_split);
    tr__free(s.splits);
    tr__free(s.run);
    tr__free(s.family_of);
    tr__free(s.families);
    tr__free(s.shared);
    return tr_graph_status(graph, err);
}
