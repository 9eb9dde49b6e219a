// When a run is known, so are the blocks that its parameters and values are cut in, and
// how often they are repeated. Have all ranks parts of them?
#include "graph/splitter.h"

// ---- parameters

static bool is_read_elsewhere(const tr_splitter *s, tr_value value, size_t node) {
    for (size_t n = 0; n < s->graph->node_count; n++) {
        for (int i = 0; i < s->graph->nodes[n].in_count && n != node; i++) {
            if (s->graph->nodes[n].in[i] == value) {
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

// Of one tensor: the parts of its blocks are evenly apart.
static bool can_cut_one(const tr_splitter *s, const tr_family *f, int64_t size) {
    int64_t blocks = f && f->blocks > 0 ? f->blocks : 1;
    for (int b = 0; f && b < f->blocks; b++) {
        if (f->block[b] * blocks != size || parts_of(s, f, b) != parts_of(s, f, 0)) {
            return false;
        }
    }
    return size % blocks == 0 && size / blocks >= parts_of(s, f, 0);
}

// Of tensors that are stacked: each is a block.
static bool can_cut_stack(const tr_splitter *s, tr_family *f, size_t first,
                          size_t end) {
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
               (!f || f->block[p - first] == rows);
    }
    return fits;
}

// Dimensions differ between the tensors of a family that says no blocks: then each is
// one block, or, stacked, as many as there are parameters in it.
static bool can_cut(const tr_splitter *s, tr_value value, size_t node,
                    const tr_cut *cut, tr_family *f) {
    size_t first, end;
    tr__split_stack(s, value, &first, &end);
    const tr_param_info *param = &s->graph->params[first];
    int64_t size = tr__split_info(s, value)->desc.shape.dim[cut->dim];
    bool stacked = end - first > 1;
    if ((param->shared && !s->tied) || param->whole || param->quantized ||
        param->split || is_read_elsewhere(s, value, node) ||
        (param->by_rows && cut->dim != 0) || (stacked && cut->dim != 0)) {
        return false;
    }
    return stacked ? can_cut_stack(s, f, first, end) : can_cut_one(s, f, size);
}

// ---- values

// Has each rank some of every block of the value?
static bool has_parts(const tr_splitter *s, tr_value value, const tr_family *f) {
    bool has = f->blocks > 0 ||
               tr__split_info(s, value)->desc.shape.dim[f->dim] >= s->walk->ranks;
    for (int b = 0; b < f->blocks; b++) {
        has = has && f->block[b] >= parts_of(s, f, b);
    }
    return has;
}

// Where the family's block begins that the way asks for; -1: there is none. *b: which.
static int64_t find_block(const tr_family *f, const tr_split *way, int *b) {
    int64_t first = 0;
    for (*b = 0; *b < f->blocks; (*b)++) {
        if (way->first == first && way->count == f->block[*b]) {
            return first;
        }
        first += f->block[*b];
    }
    return -1;
}

// Are the elements that the way asks for one of the value's blocks, or all, and has
// each rank as much of every block?
static bool has_block(const tr_splitter *s, tr_value value, const tr_family *f,
                      const tr_split *way) {
    int64_t width = tr__split_info(s, value)->desc.shape.dim[f->dim];
    int at;
    bool even = f->blocks > 0 || width % s->walk->ranks == 0;
    for (int b = 0; b < f->blocks; b++) {
        even = even && f->block[b] % parts_of(s, f, b) == 0;
    }
    return even && (way->count == width || find_block(f, way, &at) >= 0);
}

// Where this rank has what the way asks for.
static void place(const tr_splitter *s, tr_value value, const tr_family *f,
                  tr_split *way) {
    int64_t width = tr__split_info(s, value)->desc.shape.dim[f->dim];
    int64_t first = 0, count = 0, end = way->first + way->count, begin = 0, unused;
    for (int b = 0; b < f->blocks && begin < end; b++) {
        int64_t own = tr__split_own(s, f, b, f->block[b], &unused);
        *(begin < way->first ? &first : &count) += own;
        begin += f->block[b];
    }
    if (f->blocks == 0) {
        count = tr__split_own(s, f, 0, width, &unused);
    }
    way->place(way->attr, first, count);
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
    bool one =
        out >= 0 && way->count > 0 && find_block(&s->families[out], way, &at) >= 0;
    for (int i = 0; i < node->in_count && out >= 0 && (one || way->joined); i++) {
        int in = node->in[i] == TR_NO_VALUE ? -1 : s->family_of[node->in[i]];
        if (in >= 0 && in != out && way->in[i].blocks == 1 &&
            !link(&s->families[out], way->joined ? i : at, &s->families[in], 0,
                  changed)) {
            return false;
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
            way->in[i].dim >= 0 &&
            !can_cut(s, value, (size_t)n, &way->in[i],
                     tr__split_family(s, node, way, i))) {
            return false;
        }
    }
    // What is written apart has one result.
    return node->out_count == 1 || node->out[1] == TR_NO_VALUE ||
           !tr__split_mixed(s, node, way);
}

static bool settle_outputs(tr_splitter *s, int n) {
    const tr_call *node = &s->graph->nodes[n];
    tr_split *way = &s->splits[n];
    for (int i = 0; i < node->out_count; i++) {
        int f = node->out[i] == TR_NO_VALUE ? -1 : s->family_of[node->out[i]];
        if (f >= 0 && !has_parts(s, node->out[i], &s->families[f])) {
            return false;
        }
        if (f >= 0 && i == 0 && way->count > 0) {
            if (!has_block(s, node->out[i], &s->families[f], way)) {
                return false;
            }
            place(s, node->out[i], &s->families[f], way);
        }
    }
    return true;
}

bool tr__split_settle_run(tr_splitter *s) {
    bool good = link_run(s);
    for (int r = 0; r < s->run_count && good; r++) {
        good = can_cut_params(s, s->run[r]) && settle_outputs(s, s->run[r]);
    }
    return good;
}
