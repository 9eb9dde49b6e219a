// A unit's graph while it is split over ranks: which nodes, in which ways, and how what
// they make is cut.
#ifndef TR_GRAPH_SPLITTER_H
#define TR_GRAPH_SPLITTER_H

#include "graph/rewrite.h"

// Tensors that are cut alike, in blocks that one of the ops which work on them says.
typedef struct tr_family {
    int dim, blocks; // blocks 0: nobody has said yet
    int64_t block[TR_CUT_BLOCKS_MAX];
} tr_family;

typedef struct tr_splitter {
    tr_graph *graph;
    const tr_rewrite_walk *walk;
    bool tied;           // tensors that several units use may be cut
    bool *is_split;      // [nodes]
    tr_split *splits;    // [nodes]
    int *family_of;      // [values] of families; -1: whole
    tr_family *families; // [values]
    int family_count;
    tr_value *shared; // [values] the value whose gradient is summed; TR_NO_VALUE
    // The run that is tried: its nodes, and how many there were before it.
    int *run; // [nodes]
    int run_count;
    int family_before;
} tr_splitter;

static inline tr_value_info *tr__split_info(const tr_splitter *s, tr_value value) {
    return &s->graph->values[value];
}

static inline bool tr__split_is_param(const tr_splitter *s, tr_value value) {
    return tr__split_info(s, value)->kind == TR_VALUE_PARAM;
}

// Of whatever blocks: the family of those cuts of a way that say none. -1: none yet.
int tr__split_open_family(const tr_splitter *s, const tr_call *node,
                          const tr_split *way);
// The family of an input's cut where the way says no blocks of it; NULL: none.
tr_family *tr__split_family(const tr_splitter *s, const tr_call *node,
                            const tr_split *way, int input);
// Parameters that lie in one tensor with the one of the value: [first, end).
void tr__split_stack(const tr_splitter *s, tr_value value, size_t *first, size_t *end);

// Writes the graph anew, of which is known how it is split.
void tr__split_write(tr_splitter *s);

#endif
