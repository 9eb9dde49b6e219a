// Products of as many matrices as there are: y = a b.
#ifndef TR_OPS_NN_PRODUCT_PRODUCT_H
#define TR_OPS_NN_PRODUCT_PRODUCT_H

#include <tranche/extend/op.h>

typedef struct tr_product_attr {
    int32_t a_transposed, b_transposed; // as they lie in memory
} tr_product_attr;

// in:  a [B, N, M, K] (transposed: [B, N, K, M]), b [B, N, K, O] (transposed: [B, N, O,
//      K])
// out: y [B, N, M, O]
// Its backward is two of its own.
extern const tr_op tr__op_product;

#endif
