// The gradient of an output, as the caller of a step in parts gives it, becomes what
// the backward begins with.
#ifndef TR_OPS_FLAT_SEED_SEED_H
#define TR_OPS_FLAT_SEED_SEED_H

#include <tranche/extend/op.h>

// Without padding, as descriptions of launches are told apart byte by byte.
typedef struct tr_seed_attr {
    int64_t room; // elements of the result: at least as many as the input has
    int64_t to;   // tr_dtype: of the result
} tr_seed_attr;

// in: g [...] f32, bf16 or f16   out: dy [room] of type `to` = g * run->loss_seed,
// rounded once; behind them zeros, for rows that are not there
extern const tr_op tr__op_seed;

#endif
