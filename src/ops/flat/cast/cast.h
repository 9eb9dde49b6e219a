// y = x in another format: what the batch's f32 features need where the model computes
// in 16 bits.
#ifndef TR_OPS_FLAT_CAST_CAST_H
#define TR_OPS_FLAT_CAST_CAST_H

#include <tranche/extend/op.h>

typedef struct tr_cast_attr {
    int32_t to; // tr_dtype
} tr_cast_attr;

// in: x [...] f32, bf16 or f16   out: y [...] of type `to`, rounded to nearest
// Its backward casts the gradient back.
extern const tr_op tr__op_cast;

// That of all its kernels.
void tr__cast_cost(const tr_op_desc *desc, tr_cost *cost);

#endif
