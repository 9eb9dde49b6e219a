// When a run is known, so are the blocks that its parameters and values are cut in, and
// how often they are repeated. Have all ranks parts of them?
#include "graph/splitter.h"

// ---- parameters

// By a node that does not follow those which cut it along the dimension?
static bool is_read_elsewhere(const tr_splitter *s, tr_value value, size_t node,
                              int dim) {
    for (size_t n = 0; n < s->graph->node_count; n++) {
        for (int i = 0; i < s->graph->nodes[n].in_count && n != node; i++) {
            bool follows = s->is_split[n] && (s->splits[n].follows >> i & 1) &&
                           s->splits[n].in[i].dim == dim;
            if (s->graph->nodes[n].in[i] == value && !follows) {
                return true;
            }
        }
    }
    return false;
}

// Into how many parts block b is cut.
static int64_t parts_of(const tr_splitter *s, const tr_family *f, int b) {
    return s->walk->ranks / tr__split_repeat(f, b);
}

// In few bits all parts are equal, and consist of whole blocks of these. grain: see
// tr__few_bits_grain.
static bool keeps_bits(const tr_splitter *s, const tr_family *f, int b, int64_t size,
                       int64_t grain) {
    return grain == 0 || size % (parts_of(s, f, b) * grain) == 0;
}

// Of one tensor: as many ranks have a part of each of its blocks.
static bool can_cut_one(const tr_splitter *s, const tr_family *f, int64_t size,
                        int64_t grain) {
    int64_t all = 0;
    bool fits = true, blocks = f && f->blocks > 0;
    for (int b = 0; b < (blocks ? f->blocks : 1) && fits; b++) {
        int64_t block = blocks ? f->block[b] : size;
        all += block;
        fits = block >= parts_of(s, f, b) && parts_of(s, f, b) == parts_of(s, f, 0) &&
               keeps_bits(s, f, b, block, grain);
    }
    return fits && all == size;
}

// Of tensors that are stacked: each is a block.
static bool can_cut_stack(const tr_splitter *s, tr_family *f, size_t first, size_t end,
                          int64_t grain) {
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
        fits = rows >= parts_of(s, f, (int)(p - first)) &&
               (!f || f->block[p - first] == rows) &&
               keeps_bits(s, f, (int)(p - first), rows, grain);
    }
    return fits;
}

// Dimensions differ between the tensors of a family that says no blocks: then each is
// one block, or, stacked, as many as there are parameters in it.
static bool can_cut(const tr_splitter *s, size_t n, int input, tr_family *f) {
    const tr_call *node = &s->graph->nodes[n];
    tr_value value = node->in[input];
    int dim = s->splits[n].in[input].dim;
    size_t first, end;
    tr__split_stack(s, value, &first, &end);
    const tr_param_info *param = &s->graph->params[first];
    int64_t size = tr__split_info(s, value)->desc.shape.dim[dim];
    bool stacked = end - first > 1;
    if ((param->shared && !s->tied) || param->whole || param->split ||
        is_read_elsewhere(s, value, n, dim) || (param->by_rows && dim != 0) ||
        (stacked && dim != 0)) {
        return false;
    }
    int64_t grain = tr__few_bits_grain(s->graph, s->walk, node, input, dim);
    return stacked ? can_cut_stack(s, f, first, end, grain)
                   : can_cut_one(s, f, size, grain);
}

// ---- values

// Has each rank some of every block of the value?
static bool has_parts(const tr_splitter *s, tr_value value, const tr_family *f) {
    bool has =
        f->blocks > 0 ||
        tr__split_info(s, value)->desc.shape.dim[s->dim_of[value]] >= s->walk->ranks;
    for (int b = 0; b < f->blocks; b++) {
        has = has && f->block[b] >= parts_of(s, f, b);
    }
    return has;
}

// The tensor that the way's ranges are of: how long it is along its cut, and the blocks
// in it. NULL: none are said.
static const tr_family *ranged(const tr_splitter *s, const tr_call *node,
                               const tr_split *way, int64_t *width) {
    tr_value value = way->taken > 0 ? node->in[way->taken - 1] : node->out[0];
    int dim = way->taken > 0 ? way->in[way->taken - 1].dim : way->out[0].dim;
    *width = tr__split_info(s, value)->desc.shape.dim[dim];
    return way->taken > 0 ? tr__split_param_family(s, value)
                          : &s->families[s->family_of[value]];
}

// Where this rank has the elements of a range. Those that are taken of a parameter are
// counted from the first of the blocks with which they lie in one tensor.
static void place(const tr_splitter *s, const tr_family *f, int64_t width, int r,
                  tr_split *way) {
    const tr_split_range *range = &way->range[r];
    int64_t first = 0, count = 0, end = range->first + range->count, begin = 0, unused;
    int at, from = 0;
    if (way->taken > 0 && f && tr__split_block(f, range, &at) >= 0) {
        from = tr__split_alike_from(f, at);
    }
    for (int b = 0; f && b < f->blocks && begin < end; b++) {
        int64_t own = b < from ? 0 : tr__split_own(s, f, b, f->block[b], &unused);
        *(begin < range->first ? &first : &count) += own;
        begin += f->block[b];
    }
    if (!f || f->blocks == 0) {
        count = tr__split_own(s, f, 0, width, &unused);
    }
    way->place(way->attr, r, first, count);
}

// Are the elements of each range one of the blocks, or all?
static bool place_ranges(const tr_splitter *s, int n, tr_split *way) {
    int64_t width;
    int at;
    const tr_family *f = ranged(s, &s->graph->nodes[n], way, &width);
    bool good = true;
    for (int r = 0; r < way->ranges && good; r++) {
        good = way->range[r].count == width ||
               (f && tr__split_block(f, &way->range[r], &at) >= 0);
        if (good) {
            place(s, f, width, r, way);
        }
    }
    return good;
}

// ---- how often blocks are repeated

// Block b of one is block c of the other. *changed: one of them did not know. false:
// they differ.
static bool link(tr_family *f, int b, tr_family *g, int c, bool *changed) {
    int64_t *one = &f->repeat[b], *other = &g->repeat[c];
    if (*one == *other) {
        return true;
    }
    if (*one != 0 && *other != 0) {
        return false;
    }
    *changed = true;
    *one = *other = *one + *other;
    return true;
}

// What the way says of output 0's blocks and those of the inputs.
static bool link_node(tr_splitter *s, const tr_call *node, const tr_split *way,
                      bool *changed) {
    int out = node->out[0] == TR_NO_VALUE ? -1 : s->family_of[node->out[0]], at = 0;
    for (int r = 0; r < way->ranges && out >= 0; r++) {
        bool one = tr__split_block(&s->families[out], &way->range[r], &at) >= 0;
        for (int i = 0; i < node->in_count && one; i++) {
            bool is_of = (way->range[r].inputs >> i & 1) && way->in[i].blocks == 1;
            int in = is_of ? s->family_of[node->in[i]] : -1;
            if (in >= 0 && in != out &&
                !link(&s->families[out], at, &s->families[in], 0, changed)) {
                return false;
            }
        }
    }
    return true;
}

static bool link_run(tr_splitter *s) {
    bool changed = true, good = true;
    while (changed && good) {
        changed = false;
        for (int r = 0; r < s->run_count && good; r++) {
            int n = s->run[r];
            good = link_node(s, &s->graph->nodes[n], &s->splits[n], &changed);
        }
    }
    return good;
}

// ---- the run

static bool can_cut_params(const tr_splitter *s, int n) {
    const tr_call *node = &s->graph->nodes[n];
    const tr_split *way = &s->splits[n];
    for (int i = 0; i < node->in_count; i++) {
        tr_value value = node->in[i];
        if (value != TR_NO_VALUE && tr__split_is_param(s, value) &&
            way->in[i].dim >= 0 && !(way->follows >> i & 1) &&
            !can_cut(s, (size_t)n, i, tr__split_family(s, node, way, i))) {
            return false;
        }
    }
    // What is written apart has one result.
    return node->out_count == 1 || node->out[1] == TR_NO_VALUE ||
           !tr__split_mixed(s, node, way);
}

static bool settle_outputs(tr_splitter *s, int n) {
    const tr_call *node = &s->graph->nodes[n];
    for (int i = 0; i < node->out_count; i++) {
        int f = node->out[i] == TR_NO_VALUE ? -1 : s->family_of[node->out[i]];
        if (f >= 0 && !has_parts(s, node->out[i], &s->families[f])) {
            return false;
        }
    }
    return !s->splits[n].place || place_ranges(s, n, &s->splits[n]);
}

bool tr__split_settle_run(tr_splitter *s) {
    bool good = link_run(s);
    for (int r = 0; r < s->run_count && good; r++) {
        good = can_cut_params(s, s->run[r]) && settle_outputs(s, s->run[r]);
    }
    return good;
}
