// Token and position embedding: y[b, s] = wte[ids[b, s]] + wpe[s].
#ifndef TR_OPS_EMBEDDING_H
#define TR_OPS_EMBEDDING_H

#include <tranche/op.h>

// No attributes.
// in:  ids [B, S] i32 (all in [0, V): the data room has checked), wte [V, C] f32,
//      wpe [P, C] f32 with P >= S, or absent
// out: y [B, S, C] f32
extern const tr_op tr__op_embedding;
// in:  dy [B, S, C], ids, wte and wpe (for their shapes; not read)
// out: dwte [V, C], dwpe [P, C] or absent
extern const tr_op tr__op_embedding_backward;

#endif
