// Sizes of one attention, and where the draws of its dropout are.
#ifndef TR_OPS_NN_ATTENTION_SIZES_H
#define TR_OPS_NN_ATTENTION_SIZES_H

#include "base/checked.h"
#include "ops/nn/attention/attention.h"
#include "ops/nn/dropout/draw.h"

#include <math.h>
#include <string.h>

typedef struct tr_attention_sizes {
    int64_t batch, context, heads, depth; // depth: columns of one head
    int64_t group;        // heads of queries that share one of keys and values
    int64_t pairs;        // heads of keys and values
    int64_t width;        // heads * depth
    int64_t pitch;        // columns of qkv
    int64_t keys, values; // the columns where these begin
    int64_t window; // keys that a query sees at most; the context where there is none
    bool both;      // a query sees keys behind it, too
    float dropout;
    uint32_t draw_id;
    int64_t first_head;
    const int32_t
        *places; // [S] of the sample at work, in its documents; NULL: it is one
} tr_attention_sizes;

// qkv: the shape [B, S, (heads + 2 kv_heads) D]; attr: tr_attention_attr.
static inline tr_attention_sizes tr__attention_sizes(tr_shape qkv, const void *attr) {
    tr_attention_attr a;
    memcpy(&a, attr, sizeof a);
    int64_t pairs = a.kv_heads > 0 ? a.kv_heads : a.heads;
    int64_t depth = qkv.dim[2] / (a.heads + 2 * pairs);
    bool all = a.window <= 0 || a.window >= qkv.dim[1];
    return (tr_attention_sizes){
        .batch = qkv.dim[0],
        .context = qkv.dim[1],
        .heads = a.heads,
        .depth = depth,
        .group = a.heads / pairs,
        .pairs = pairs,
        .width = a.heads * depth,
        .pitch = qkv.dim[2],
        .keys = a.heads * depth,
        .values = (a.heads + pairs) * depth,
        .window = all ? qkv.dim[1] : a.window,
        .both = a.both != 0,
        .dropout = a.dropout,
        .draw_id = a.draw_id,
        .first_head = a.first_head,
    };
}

// The same for sample `row`; positions: [B, S], or NULL.
static inline tr_attention_sizes
tr__attention_of(const tr_attention_sizes *s, const int32_t *positions, int64_t row) {
    tr_attention_sizes of = *s;
    of.places = positions ? positions + row * s->context : NULL;
    return of;
}

// Is there a window of keys?
static inline bool tr__attention_windowed(const tr_attention_sizes *s) {
    return s->window < s->context;
}

// May a query not see exactly the keys up to its own?
static inline bool tr__attention_masked(const tr_attention_sizes *s) {
    return tr__attention_windowed(s) || s->places || s->both;
}

// The first key that a query sees. It is never before that of the query before.
static inline int64_t tr__attention_oldest(const tr_attention_sizes *s, int64_t query) {
    int64_t begin = s->places ? query - s->places[query] : 0;
    return tr__max_i64(begin, query - s->window + 1);
}

// The place behind the document that has the token at `place`, at most `end`.
static inline int64_t tr__attention_document_end(const tr_attention_sizes *s,
                                                 int64_t place, int64_t end) {
    int64_t at = place + 1;
    while (s->places && at < end && s->places[at] > 0) {
        at++;
    }
    return s->places ? at : end;
}

// The query behind the last one that sees a key.
static inline int64_t tr__attention_newest(const tr_attention_sizes *s, int64_t key) {
    int64_t end = s->both ? s->context : tr__min_i64(s->context, key + s->window);
    return tr__attention_document_end(s, key, end);
}

// The first query that sees a key.
static inline int64_t tr__attention_first_query(const tr_attention_sizes *s,
                                                int64_t key) {
    return s->both ? tr__attention_oldest(s, key) : key;
}

// The key behind the last one that a query sees.
static inline int64_t tr__attention_key_end(const tr_attention_sizes *s,
                                            int64_t query) {
    return s->both ? tr__attention_document_end(s, query, s->context) : query + 1;
}

// What makes a product of a query and a key the logarithm, to base 2, of its power:
// log2(e) / sqrt(D).
static inline float tr__attention_scale(const tr_attention_sizes *s) {
    return (float)(1.44269504088896341 / sqrt((double)s->depth));
}

// A group of draws is the probabilities of TR_DRAW_ROWS queries by TR_DRAW_LANES keys:
// the group that holds (query, key) of a head.
static inline uint64_t tr__attention_group(const tr_attention_sizes *s, int64_t head,
                                           int64_t query, int64_t key) {
    int64_t down = tr__ceil_div(s->context, TR_DRAW_ROWS);
    int64_t across = tr__ceil_div(s->context, TR_DRAW_LANES);
    int64_t row = (s->first_head + head) * down + query / TR_DRAW_ROWS;
    return (uint64_t)(row * across + key / TR_DRAW_LANES);
}

// The element of the draw for (query, key) of a head.
static inline uint64_t tr__attention_element(const tr_attention_sizes *s, int64_t head,
                                             int64_t query, int64_t key) {
    return tr__attention_group(s, head, query, key) * TR_DRAW_GROUP +
           (uint64_t)(query % TR_DRAW_ROWS * TR_DRAW_LANES + key % TR_DRAW_LANES);
}

// Checks attributes, and that input i is qkv: rank 3, its last dimension D for each
// head of q, k and v (check.c).
tr_status tr__attention_check(const tr_op_node *node, int i, tr_error *err);
// The products of the pairs that the mask leaves; over a cache, those of a full one
// (cost.c).
void tr__attention_cost(const tr_op_desc *desc, tr_cost *cost);
void tr__attention_backward_cost(const tr_op_desc *desc, tr_cost *cost);
void tr__attention_cached_cost(const tr_op_desc *desc, tr_cost *cost);

#endif
