// Token and position embedding: y[b, s] = wte[ids[b, s]] + wpe[p + s],
// p = run->position, or wpe[positions[b, s]].
//
// The table of tokens may be used in slices: each op then has some of its rows, and
// adds those that are asked for to what the op of the slice before has made.
#ifndef TR_OPS_NN_EMBEDDING_EMBEDDING_H
#define TR_OPS_NN_EMBEDDING_EMBEDDING_H

#include <tranche/extend/op.h>

typedef struct tr_embedding_attr {
    int64_t first; // id of the first row of wte
    // 1: wpe is not added, because another part of a sum over ranks adds it. Its
    // gradient is what it always is.
    int64_t positions_elsewhere;
    // 1 + the id of a row of wte that takes no gradient; 0: each row takes some.
    int64_t padding;
} tr_embedding_attr;

// Real tensors are all of one type: f32, bf16 or f16.
// in:  ids [B, S] i32, wte [V, C] (rows of ids first to first + V - 1; other ids
//      add nothing), wpe [P, C] with P >= S, or absent, before [B, S, C]: added
//      to y, or absent, positions [B, S] i32 (ops/nn/positions.h), or absent
// out: y [B, S, C]
extern const tr_op tr__op_embedding;
// The same attributes.
// in:  dy [B, S, C], ids, wte and wpe (for their shapes; not read), positions
// out: dwte [V, C] f32, dwpe [P, C] f32 or absent
extern const tr_op tr__op_embedding_backward;

#endif
