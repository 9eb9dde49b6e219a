// GELU (Hendrycks and Gimpel, arXiv 1606.08415): x Phi(x), exact or by tanh.
#ifndef TR_OPS_NN_GELU_GELU_H
#define TR_OPS_NN_GELU_GELU_H

#include <tranche/extend/op.h>

typedef enum tr_gelu_form { TR_GELU_TANH, TR_GELU_ERF } tr_gelu_form;

typedef struct tr_gelu_attr {
    tr_gelu_form form;
} tr_gelu_attr;

// in: x [...]          out: y [...]   (cheap)
extern const tr_op tr__op_gelu;
// in: dy [...], x [...]   out: dx [...]
extern const tr_op tr__op_gelu_backward;

#endif
