// Self-attention of all heads, softmax(q k' / sqrt(D)) v, with dropout on the
// probabilities: a query sees the keys before it and its own or, both ways, all keys of
// its document (Devlin et al., BERT, arXiv 1810.04805). Queries may share keys and
// values (Ainslie et al., GQA, arXiv 2305.13245), and see only the nearest keys
// (Beltagy et al., Longformer, arXiv 2004.05150, sec. 3.1). Tile by tile (Dao et al.,
// FlashAttention, arXiv 2205.14135): no context x context matrix is ever in memory.
#ifndef TR_OPS_NN_ATTENTION_ATTENTION_H
#define TR_OPS_NN_ATTENTION_ATTENTION_H

#include <tranche/extend/op.h>

typedef struct tr_attention_attr {
    int32_t heads;
    float dropout;    // probability in [0, 1)
    uint32_t draw_id; // of this draw within the unit (ops/nn/dropout/draw.h)
    // Heads of keys and values: head h of the queries reads h / (heads / kv_heads). 0:
    // as many as queries have.
    int32_t kv_heads;
    int32_t window;     // keys that a query sees, itself included; 0: all before it
    int32_t both;       // 1: keys before and behind it; 0: those before it, and its own
    int32_t first_head; // the number of head 0, by which dropout is drawn
} tr_attention_attr;

// in:  qkv [B, S, (heads + 2 kv_heads) D], f32, bf16 or f16: q, k, v side by side, head
//      h of each at its columns h D .. h D + D - 1
//      positions [B, S] i32 (ops/nn/positions.h), or absent: a query sees keys of its
//      own document alone, and blocks of keys without any are not computed. Padding
//      is tokens at place 0, each a document of its own: no other token sees it
// out: y [B, S, C], C = heads D; lse [B, heads, S] f32 (log of the sum of exponentials
//      per row)
extern const tr_op tr__op_attention;
// The same of positions from run->position on, whose queries also see the positions
// before: cache [B, 2 kv_heads, N, D] holds the keys of each head, then the values, of
// N positions, and gets those of qkv. in:  qkv [B, S, (heads + 2 kv_heads) D], cache
// out: y [B, S, C], cache (the same memory). No dropout.
// Either run->position + S <= N, or the cache is a ring, where position p has the place
// p mod N: with a window of at most N - S + 1 keys, and N a multiple of
// TR_ATTENTION_RING, so that as many aligned positions lie together.
extern const tr_op tr__op_attention_cached;
enum { TR_ATTENTION_RING = 128 };
// The cache of attention over qkv for this number of positions.
tr_tensor_desc tr__attention_cache(tr_tensor_desc qkv, const void *attr,
                                   int64_t positions);
// The number of positions that a cache needs room for, in a text of `positions` that is
// computed in pieces of up to `piece`: with a window it is a ring, and may be less.
int64_t tr__attention_cache_room(const tr_attention_attr *attr, int64_t positions,
                                 int64_t piece);
// in:  dy [B, S, C], qkv, y, lse, positions      out: dqkv, as qkv
extern const tr_op tr__op_attention_backward;

#endif
