// Causal self-attention of all heads, softmax(q k' / sqrt(D)) v, with dropout on the
// probabilities. Tile by tile (Dao et al., FlashAttention, arXiv 2205.14135): no
// context x context matrix is ever in memory.
#ifndef TR_OPS_ATTENTION_H
#define TR_OPS_ATTENTION_H

#include <tranche/op.h>

typedef struct tr_attention_attr {
    int32_t heads;
    float dropout;    // probability in [0, 1)
    uint32_t draw_id; // of this draw within the unit (ops/dropout/draw.h)
} tr_attention_attr;

// in:  qkv [B, S, 3 C], f32, bf16 or f16: q, k, v side by side, head h at columns h*D
// .. h*D + D - 1 out: y [B, S, C], lse [B, heads, S] f32 (log of the sum of
// exponentials per row)
extern const tr_op tr__op_attention;
// in:  dy [B, S, C], qkv, y, lse      out: dqkv [B, S, 3 C]
extern const tr_op tr__op_attention_backward;

#endif
