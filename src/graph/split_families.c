// What is cut alike: the family of a cut, its blocks, and the parameters that lie in
// one tensor.
#include "graph/splitter.h"

#include "ops/operand.h"

#include <string.h>

int tr__split_new_family(tr_splitter *s, const tr_cut *cut) {
    tr_family *f = &s->families[s->family_count];
    *f = (tr_family){.dim = cut->dim, .blocks = cut->blocks};
    memcpy(f->block, cut->block, sizeof f->block);
    memcpy(f->repeat, cut->repeat, sizeof f->repeat);
    return s->family_count++;
}

bool tr__split_agrees(tr_family *f, const tr_cut *cut) {
    if (f->dim != cut->dim) {
        return false;
    }
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

tr_family *tr__split_family(const tr_splitter *s, const tr_call *node,
                            const tr_split *way, int input) {
    const tr_cut *cut = &way->in[input];
    int open = tr__split_open_family(s, node, way);
    for (int i = 0; open < 0 && i < node->out_count; i++) {
        if (node->out[i] != TR_NO_VALUE && way->out[i].dim >= 0 &&
            way->out[i].blocks == 0) {
            open = s->family_of[node->out[i]];
        }
    }
    return cut->blocks == 0 && open >= 0 ? &s->families[open] : NULL;
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
