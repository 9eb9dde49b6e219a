// Token and position embedding: y[b, s] = wte[ids[b, s]] + wpe[s].
//
// The table of tokens may be used in slices: each op then has some of its rows, and
// adds those that are asked for to what the op of the slice before has made.
#ifndef TR_OPS_EMBEDDING_H
#define TR_OPS_EMBEDDING_H

#include <tranche/op.h>

typedef struct tr_embedding_attr {
    int64_t first; // id of the first row of wte
} tr_embedding_attr;

// in:  ids [B, S] i32, wte [V, C] f32 (rows of ids first to first + V - 1; other ids
//      add nothing), wpe [P, C] f32 with P >= S, or absent, before [B, S, C] f32: added
//      to y, or absent
// out: y [B, S, C] f32
extern const tr_op tr__op_embedding;
// The same attributes.
// in:  dy [B, S, C], ids, wte and wpe (for their shapes; not read)
// out: dwte [V, C], dwpe [P, C] or absent
extern const tr_op tr__op_embedding_backward;

#endif
