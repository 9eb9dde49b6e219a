// What the kernels of the contrastive loss read from their descriptors and launches.
#ifndef TR_OPS_NN_CONTRASTIVE_OPERANDS_H
#define TR_OPS_NN_CONTRASTIVE_OPERANDS_H

#include "ops/nn/contrastive/contrastive.h"
#include "ops/nn/contrastive/mark.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

enum { PAIRS_X, PAIRS_TARGETS, PAIRS_POOL, PAIRS_SCALE };
enum { PAIRS_DX, PAIRS_DPOOL, PAIRS_DSCALE, PAIRS_SUMS };

// A launch of the loss or of its backward.
typedef struct tr_contrastive_batch {
    tr_contrastive_attr attr;
    const float *x;        // [there, texts, width]
    const int32_t *number; // [there, texts]
    const float *pool;     // [groups, texts, row]
    int64_t texts, width, groups;
    int64_t row;   // numbers of a text in the pool
    int64_t there; // groups of the micro-batch
    int64_t first; // place of its first group
    bool marked;   // texts of the pool have their numbers behind them
    double factor; // of products
    double seed;
} tr_contrastive_batch;

static inline bool tr__contrastive_has(const tr_op_desc *desc, int input) {
    return desc->in_count > input && desc->in[input].dtype != TR_NONE;
}

// All of it but the factor, which may lie on a device.
static inline tr_contrastive_batch tr__contrastive_shape(const tr_op_desc *desc,
                                                         const tr_launch *launch) {
    tr_shape shape = desc->in[PAIRS_X].shape;
    bool pool = tr__contrastive_has(desc, PAIRS_POOL);
    tr_contrastive_batch b = {.x = launch->in[PAIRS_X],
                              .number = launch->in[PAIRS_TARGETS],
                              .pool = launch->in[pool ? PAIRS_POOL : PAIRS_X],
                              .texts = shape.dim[1],
                              .width = shape.dim[2],
                              .row = shape.dim[2] + (pool ? TR_TEXT_MARK : 0),
                              .there = tr__rows_there(launch, shape.dim[0]),
                              .marked = pool,
                              .seed = launch->run->loss_seed};
    memcpy(&b.attr, desc->attr, sizeof b.attr);
    b.groups = pool ? desc->in[PAIRS_POOL].shape.dim[0] : b.there;
    b.first = pool ? (int64_t)(launch->run->sample % (uint64_t)b.groups) : 0;
    return b;
}

static inline tr_contrastive_batch tr__contrastive_batch(const tr_op_desc *desc,
                                                         const tr_launch *launch) {
    tr_contrastive_batch b = tr__contrastive_shape(desc, launch);
    b.factor = tr__contrastive_has(desc, PAIRS_SCALE)
                   ? exp((double)*(const float *)launch->in[PAIRS_SCALE])
                   : 1 / b.attr.temperature;
    return b;
}

static inline int64_t tr__contrastive_place(const tr_contrastive_batch *b,
                                            int64_t group) {
    return (b->first + group) % b->groups;
}

static inline const float *tr__pool_text(const tr_contrastive_batch *b, int64_t group,
                                         int64_t text) {
    return b->pool + (group * b->texts + text) * b->row;
}

static inline bool tr__pool_has(const tr_contrastive_batch *b, int64_t group) {
    return !b->marked || tr__pool_text(b, group, TR_ANCHOR)[b->width] > 0;
}

static inline int64_t tr__pool_number(const tr_contrastive_batch *b, int64_t group,
                                      int64_t text) {
    return b->marked ? tr__text_marked(tr__pool_text(b, group, text) + b->width)
                     : (int64_t)(uint32_t)b->number[group * b->texts + text];
}

// One way of the loss: text `asks` of each group is to be told text `own` of it from
// among the texts [from, to) of all groups.
typedef struct tr_contrastive_side {
    int64_t asks, own, from, to;
    double weight; // of its losses
} tr_contrastive_side;

static inline int tr__contrastive_sides(const tr_contrastive_batch *b) {
    return b->texts <= TR_POSITIVE ? 0 : b->attr.symmetric ? 2 : 1;
}

static inline tr_contrastive_side tr__contrastive_side(const tr_contrastive_batch *b,
                                                       int side) {
    double weight = b->attr.symmetric ? 0.5 : 1;
    return side == 0 ? (tr_contrastive_side){TR_ANCHOR, TR_POSITIVE, TR_POSITIVE,
                                             b->texts, weight}
                     : (tr_contrastive_side){TR_POSITIVE, TR_ANCHOR, TR_ANCHOR,
                                             TR_ANCHOR + 1, weight};
}

// What the candidates of a group's text may not equal.
typedef struct tr_contrastive_equal {
    int64_t asks, own; // its number and its own text's
} tr_contrastive_equal;

static inline tr_contrastive_equal
tr__contrastive_equal(const tr_contrastive_batch *b, const tr_contrastive_side *side,
                      int64_t group) {
    const int32_t *number = b->number + group * b->texts;
    return (tr_contrastive_equal){(int64_t)(uint32_t)number[side->asks],
                                  (int64_t)(uint32_t)number[side->own]};
}

// number: the candidate's; asks: that of the text of its group which is as the one that
// asks where the candidate is as its own one, else -1.
static inline bool tr__contrastive_is_equal(const tr_contrastive_equal *to,
                                            int64_t number, int64_t asks) {
    return number == to->asks || number == to->own || asks == to->asks;
}

static inline void tr__contrastive_cost(const tr_op_desc *desc, tr_cost *out) {
    int against = tr__contrastive_has(desc, PAIRS_POOL) ? PAIRS_POOL : PAIRS_X;
    tr__desc_cost(desc, 0, out);
    out->flops = 8 * (double)desc->in[PAIRS_X].shape.dim[0] *
                 (double)tr_shape_count(desc->in[against].shape);
}

#endif
