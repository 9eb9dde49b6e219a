// A unit's graph while it is split over ranks: which nodes, in which ways, and how what
// they make is cut.
#ifndef TR_GRAPH_SPLITTER_H
#define TR_GRAPH_SPLITTER_H

#include "graph/rewrite.h"
#include "ops/nn/columns/columns.h"

// Tensors that are cut alike, in blocks that one of the ops which work on them says.
typedef struct tr_family {
    int blocks; // 0: nobody has said yet
    int64_t block[TR_CUT_BLOCKS_MAX];
    int64_t repeat[TR_CUT_BLOCKS_MAX]; // 0: nobody has said yet (tr_cut.repeat)
} tr_family;

typedef struct tr_splitter {
    tr_graph *graph;
    const tr_rewrite_walk *walk;
    bool tied;           // tensors that several units use may be cut
    bool *is_split;      // [nodes]
    tr_split *splits;    // [nodes]
    int *family_of;      // [values] of families; -1: whole
    int *dim_of;         // [values] the dimension that is cut, where there is a family
    tr_family *families; // [values]
    int family_count;
    // Along the tokens (walk->tokens): nodes of no run of which each rank does its
    // part, and values of which it has its part.
    bool *by_tokens;  // [nodes]
    bool *cut_tokens; // [values]
    // What stands for a value where another form of it is needed; TR_NO_VALUE: nothing
    // yet. All of it, of whose gradient each rank makes a part, or all ranks the same;
    // and this rank's part of it.
    tr_value *shared, *whole, *part; // [values]
    // The run that is tried: its nodes, and how many there were before it.
    int *run; // [nodes]
    int run_count;
    int family_before;
    int join; // the family that the next value which says no blocks is cut in; -1: none
} tr_splitter;

static inline tr_value_info *tr__split_info(const tr_splitter *s, tr_value value) {
    return &s->graph->values[value];
}

static inline bool tr__split_is_param(const tr_splitter *s, tr_value value) {
    return tr__split_info(s, value)->kind == TR_VALUE_PARAM;
}

// A new family of tensors that are cut as one is; its number.
int tr__split_new_family(tr_splitter *s, const tr_cut *cut);
// The op says how the family is cut, or takes it as it is. false: it is cut otherwise.
bool tr__split_agrees(tr_family *f, const tr_cut *cut);
// Of whatever blocks: the family of those cuts of a way that say none. -1: none yet.
int tr__split_open_family(const tr_splitter *s, const tr_call *node,
                          const tr_split *way);
// The family of an input's cut where the way says no blocks of it, or those of a range;
// NULL: none.
tr_family *tr__split_family(const tr_splitter *s, const tr_call *node,
                            const tr_split *way, int input);
// The same of a parameter, as the nodes say that are split and do not follow others
// (tr_split.follows); NULL: none.
tr_family *tr__split_param_family(const tr_splitter *s, tr_value value);
// Of the blocks of a family, the first of those up to block b that are as often
// repeated; and the end of those from b on.
int tr__split_alike_from(const tr_family *f, int b);
int tr__split_alike_end(const tr_family *f, int b);
// Where the family's block begins that is the range; -1: there is none. *b: which.
int64_t tr__split_block(const tr_family *f, const tr_split_range *range, int *b);
// Parameters that lie in one tensor with the one of the value: [first, end).
void tr__split_stack(const tr_splitter *s, tr_value value, size_t *first, size_t *end);
// Of how many ranks the same part is of block b of a family (NULL: of no blocks), and
// how much of so many elements of it this rank has, from which on.
int64_t tr__split_repeat(const tr_family *f, int b);
int64_t tr__split_own(const tr_splitter *s, const tr_family *f, int b, int64_t elements,
                      int64_t *first);
// When a run is known, so are the blocks that its tensors are cut in, and how often
// they are repeated. false: some of these have no parts for all ranks.
bool tr__split_settle_run(tr_splitter *s);

// Way `way` of the node; false: there is none.
bool tr__split_way(const tr_splitter *s, const tr_call *node, int way, tr_split *out);
// Finds the nodes that are cut along the tokens, when runs are known; and which whole
// parameters are summed because of that.
void tr__split_find_tokens(tr_splitter *s);
// Can ranks share the tokens of the value?
bool tr__split_has_tokens(const tr_splitter *s, tr_value value);

// The value as a node needs it that stands in the place of `like`: this rank's part; or
// all of it, of whose gradient each rank makes a part (`shared`) or all the same.
tr_value tr__split_part(tr_splitter *s, const tr_call *like, tr_value value);
tr_value tr__split_all(tr_splitter *s, const tr_call *like, tr_value value,
                       bool shared);
// A new value, like that of a node in the place of `like`; one that is a rank's part.
tr_value tr__split_value(tr_splitter *s, const tr_call *like, tr_tensor_desc desc);
tr_value tr__split_value_part(tr_splitter *s, const tr_call *like, tr_tensor_desc desc);
// `to`: the sum over ranks of what each has in `from`: all of it, or, along the tokens,
// this rank's part.
void tr__split_sum(tr_splitter *s, const tr_call *like, tr_value from, tr_value to);
void tr__split_sum_tokens(tr_splitter *s, const tr_call *like, tr_value from,
                          tr_value to);
// These columns of a value that is this rank's part.
tr_value tr__split_columns(tr_splitter *s, const tr_call *like, tr_value value,
                           const tr_columns_attr *columns);
// A node that adds a bias.
void tr__split_bias(tr_splitter *s, const tr_call *like, tr_value x, tr_value bias,
                    tr_value y);

// Cuts the parameter's value, and all parameters that are stacked in it, as the family
// says (NULL: of no blocks).
void tr__split_params(tr_splitter *s, tr_value value, int dim, const tr_family *f);
// Are some of the blocks that the way cuts output 0 in repeated, and others not?
bool tr__split_mixed(const tr_splitter *s, const tr_call *node, const tr_split *way);
// Writes a node whose parameters are stacked, with its operands as they are here, as
// one for each run of blocks that are as often repeated, and joins what they make.
void tr__split_write_apart(tr_splitter *s, const tr_call *old, const tr_call *node);
// The value of those of stacked parameters that the way's range is one of.
tr_value tr__split_taken(const tr_splitter *s, tr_value value, const tr_split *way);

// Writes the graph anew, of which is known how it is split.
void tr__split_write(tr_splitter *s);

#endif
