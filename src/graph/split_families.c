// What is cut alike: the family of a cut, and the parameters that lie in one tensor.
#include "graph/splitter.h"

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
