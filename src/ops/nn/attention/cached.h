// A cache of keys and values, as the kernels see it.
#ifndef TR_OPS_NN_ATTENTION_CACHED_H
#define TR_OPS_NN_ATTENTION_CACHED_H

#include "ops/nn/attention/sizes.h"

typedef struct tr_attention_cached_sizes {
    tr_attention_sizes now; // of qkv
    int64_t room;           // positions of the cache
    int64_t position;       // of the first query
    int64_t window; // keys that a query sees at most, itself included; INT64_MAX: all
} tr_attention_cached_sizes;

static inline tr_attention_cached_sizes
tr__attention_cached_sizes(const tr_op_desc *desc, const tr_launch *launch) {
    tr_attention_attr a;
    memcpy(&a, desc->attr, sizeof a);
    int64_t room = desc->in[1].shape.dim[2];
    return (tr_attention_cached_sizes){
        .now = tr__attention_sizes(desc->in[0].shape, desc->attr),
        .room = room,
        .position = launch->run->position,
        .window = a.window > 0 ? a.window : INT64_MAX,
    };
}

// The first position that a query sees.
static inline int64_t tr__attention_cached_oldest(const tr_attention_cached_sizes *s,
                                                  int64_t position) {
    return tr__max_i64(0, position - s->window + 1);
}

// The place of a position in the cache.
static inline int64_t tr__attention_cached_place(const tr_attention_cached_sizes *s,
                                                 int64_t position) {
    return position % s->room;
}

// Where the keys (values: head + pairs) of a head begin in the cache: [room, depth].
static inline int64_t tr__attention_cached_head(const tr_attention_cached_sizes *s,
                                                int64_t sample, int64_t head) {
    return (sample * 2 * s->now.pairs + head) * s->room * s->now.depth;
}

// Are the positions there?  A caller's mistake, which must not write elsewhere.
static inline bool tr__attention_cached_fits(const tr_attention_cached_sizes *s,
                                             const tr_launch *launch) {
    int64_t rest = s->room - s->now.context; // beside the piece itself
    bool ring = s->room % TR_ATTENTION_RING == 0 && s->window <= rest + 1;
    bool fits = s->position >= 0 && (s->position <= rest || ring);
    if (!fits && launch->failed) {
        *launch->failed = TR_INTERNAL;
    }
    return fits;
}

#endif
