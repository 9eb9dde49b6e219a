// What is cut alike: the family of a cut, its blocks, and the parameters that lie in
// one tensor.
#include "graph/splitter.h"

#include "ops/operand.h"

#include <string.h>

int tr__split_new_family(tr_splitter *s, const tr_cut *cut) {
    tr_family *f = &s->families[s->family_count];
    *f = (tr_family){.blocks = cut->blocks};
    memcpy(f->block, cut->block, sizeof f->block);
    memcpy(f->repeat, cut->repeat, sizeof f->repeat);
    return s->family_count++;
}

bool tr__split_agrees(tr_family *f, const tr_cut *cut) {
    if (f->blocks == 0) {
        f->blocks = cut->blocks;
        memcpy(f->block, cut->block, sizeof f->block);
    }
    bool same = cut->blocks == 0 || f->blocks == cut->blocks;
    for (int b = 0; b < cut->blocks && same; b++) {
        int64_t *repeat = &f->repeat[b], said = cut->repeat[b];
        *repeat = *repeat == 0 ? said : *repeat;
        same = f->block[b] == cut->block[b] && (said == 0 || said == *repeat);
    }
    return same;
}

int tr__split_open_family(const tr_splitter *s, const tr_call *node,
                          const tr_split *way) {
    for (int i = 0; i < node->in_count; i++) {
        tr_value value = node->in[i];
        if (value != TR_NO_VALUE && way->in[i].dim >= 0 && way->in[i].blocks == 0 &&
            !tr__split_is_param(s, value)) {
            return s->family_of[value];
        }
    }
    return -1;
}

// Of a parameter that is of a range of output 0: that of another input of the range.
static int range_family(const tr_splitter *s, const tr_call *node, const tr_split *way,
                        int input) {
    for (int r = 0; r < way->ranges; r++) {
        uint32_t inputs = way->range[r].inputs;
        for (int i = 0; i < node->in_count && (inputs >> input & 1); i++) {
            if ((inputs >> i & 1) && node->in[i] != TR_NO_VALUE &&
                !tr__split_is_param(s, node->in[i])) {
                return s->family_of[node->in[i]];
            }
        }
    }
    return -1;
}

tr_family *tr__split_family(const tr_splitter *s, const tr_call *node,
                            const tr_split *way, int input) {
    int open = way->in[input].blocks == 0 ? tr__split_open_family(s, node, way)
                                          : range_family(s, node, way, input);
    for (int i = 0; open < 0 && i < node->out_count && way->in[input].blocks == 0;
         i++) {
        if (node->out[i] != TR_NO_VALUE && way->out[i].dim >= 0 &&
            way->out[i].blocks == 0) {
            open = s->family_of[node->out[i]];
        }
    }
    return open >= 0 ? &s->families[open] : NULL;
}

tr_family *tr__split_param_family(const tr_splitter *s, tr_value value) {
    for (size_t n = 0; n < s->graph->node_count; n++) {
        const tr_call *node = &s->graph->nodes[n];
        for (int i = 0; i < node->in_count && s->is_split[n]; i++) {
            const tr_split *way = &s->splits[n];
            if (node->in[i] == value && way->in[i].dim >= 0 &&
                !(way->follows >> i & 1)) {
                return tr__split_family(s, node, way, i);
            }
        }
    }
    return NULL;
}

int tr__split_alike_from(const tr_family *f, int b) {
    while (b > 0 && tr__split_repeat(f, b - 1) == tr__split_repeat(f, b)) {
        b--;
    }
    return b;
}

int tr__split_alike_end(const tr_family *f, int b) {
    int end = b + 1;
    while (end < f->blocks && tr__split_repeat(f, end) == tr__split_repeat(f, b)) {
        end++;
    }
    return end;
}

int64_t tr__split_block(const tr_family *f, const tr_split_range *range, int *b) {
    int64_t first = 0;
    for (*b = 0; *b < f->blocks; (*b)++) {
        if (range->first == first && range->count == f->block[*b]) {
            return first;
        }
        first += f->block[*b];
    }
    return -1;
}

void tr__split_stack(const tr_splitter *s, tr_value value, size_t *first, size_t *end) {
    *first = (size_t)tr__split_info(s, value)->index;
    *end = *first + 1;
    while (*end < s->graph->param_count && s->graph->params[*end].stacked) {
        (*end)++;
    }
}

int64_t tr__split_repeat(const tr_family *f, int b) {
    return f && b < f->blocks && f->repeat[b] > 1 ? f->repeat[b] : 1;
}

int64_t tr__split_own(const tr_splitter *s, const tr_family *f, int b, int64_t elements,
                      int64_t *first) {
    int64_t repeat = tr__split_repeat(f, b);
    *first = tr__cut_own_first(elements, repeat, s->walk->ranks, s->walk->rank);
    return tr__cut_own_count(elements, repeat, s->walk->ranks, s->walk->rank);
}
