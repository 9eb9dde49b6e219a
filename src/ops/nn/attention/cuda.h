#ifndef TR_OPS_NN_ATTENTION_CUDA_H
#define TR_OPS_NN_ATTENTION_CUDA_H

#include <tranche/extend/op.h>

enum {
    TR_CUDA_ATTEND_THREADS = 128, // of a block: four warps
    TR_CUDA_ATTEND_ROWS = 64,     // of a block's tile, 16 of each warp
    TR_CUDA_JOIN_THREADS = 64,
    TR_CUDA_TILE_BYTES = 8192, // of a tile of the others, which it goes through
};

// Tiles of a block's own rows, of operands of 16 bits, by kernel and piece. f32 has
// one, and so has a forward of few queries.
enum {
    TR_CUDA_ATTEND_FORWARD_64 = 2,
    TR_CUDA_ATTEND_FORWARD_128 = 2,
    TR_CUDA_ATTEND_QUERIES_64 = 2,
    TR_CUDA_ATTEND_QUERIES_128 = 1,
    TR_CUDA_ATTEND_KEYS_64 = 2,
    TR_CUDA_ATTEND_KEYS_128 = 1,
};

// Elements of a head that one block has in shared memory at a time: a wide one is taken
// piece by piece. 64 or 128.
static inline int64_t tr__cuda_attend_piece(tr_dtype real, int64_t depth) {
    return real == TR_F32 || depth <= 64 ? 64 : 128;
}

// Rows of `depth` elements, so many elements apart from sample to sample, from head to
// head and from place to place.
typedef struct tr_cuda_rows {
    const void *first;
    int64_t sample, head, place;
} tr_cuda_rows;

// Query i of a sample, at place i, has the position `position` + i `advance`; the key
// of position p has the place p % room. advance is 1; where a sample has one query, and
// several heads share keys, these heads may be what is said here of queries: 0.
typedef struct tr_cuda_attention {
    tr_cuda_rows q, k, v;
    int32_t queries, depth;
    int32_t heads, group; // heads of queries, and how many of them share keys
    int32_t position, advance, room;
    int32_t window;      // keys that a query sees at most, itself included
    float scale;         // of q . k
    float dropout, kept; // probability; what kept elements are multiplied with
    uint32_t draw_id;
    int32_t first_head;   // the number of head 0, by which it is drawn
    int32_t both;         // a query sees keys behind it, too: of its document
    int32_t whole;        // rows begin at multiples of 16 bytes
    int32_t down, across; // groups of draws of a head's probabilities
    tr_run_context run;
    const int32_t *positions; // [batch, queries] in each token's document, or NULL
} tr_cuda_attention;

// y: [batch, queries, heads depth]; lse: [batch, heads, queries] or NULL
//
// parts: into so many parts the tiles of keys are cut, `tiles` each, where one block
// has all queries: what each of them finds goes to `sums` [batch, heads, parts,
// queries, depth] and `tops` [.., queries, 2], as tr_cuda_attend_join adds it up. 1:
// all keys, to y.
typedef struct tr_cuda_attend_args {
    tr_cuda_attention of;
    tr_cuda_rows y;
    float *lse;
    int32_t add_y, add_lse;
    int32_t parts, tiles;
    float *sums, *tops;
} tr_cuda_attend_args;

// The rows of y [rows, depth], which are those of sums [rows / queries, parts, queries,
// depth]: of each part the values times their weights, and in tops [.., 2] the highest
// score, to base 2, and the sum of the weights, which are powers of 2 below it.
typedef struct tr_cuda_attend_join_args {
    const float *sums, *tops;
    void *y;
    int64_t rows, queries, depth, parts;
    int32_t real, add;
} tr_cuda_attend_join_args;

// dy: as y; lse, delta: [batch, heads, queries]; dq, dk, dv: rows as q, k and v
typedef struct tr_cuda_attend_backward_args {
    tr_cuda_attention of;
    tr_cuda_rows dy;
    const float *lse, *delta; // delta: dy . y of each query
    void *dq, *dk, *dv;
    int32_t add; // to them
} tr_cuda_attend_backward_args;

// cache: [batch, heads, room, depth] gets the `heads` heads of keys and values of qkv
// [batch, context, pitch], which begin at column `keys`: `count` elements, from the
// position `position` on.
typedef struct tr_cuda_append_args {
    const void *qkv;
    void *cache;
    int64_t count, context, heads, depth, pitch, keys, room, position;
    int32_t real;
} tr_cuda_append_args;

// dy, y: [batch, queries, heads depth]; delta: [batch, heads, queries]
typedef struct tr_cuda_attend_delta_args {
    const void *dy, *y;
    float *delta;
    int64_t rows, queries, heads, depth; // rows: batch queries heads
    int32_t real;
} tr_cuda_attend_delta_args;

#endif
