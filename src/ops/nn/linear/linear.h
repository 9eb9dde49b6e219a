// y = act(x W + b): a matrix product with bias and activation.
#ifndef TR_OPS_NN_LINEAR_LINEAR_H
#define TR_OPS_NN_LINEAR_LINEAR_H

#include <tranche/extend/op.h>

typedef enum tr_weight_layout {
    TR_WEIGHT_OUT_IN, // [out, in], torch.nn.Linear
    TR_WEIGHT_IN_OUT, // [in, out], GPT-2's Conv1D
} tr_weight_layout;

// Activations whose derivative is a function of the result, so that y alone is saved.
typedef enum tr_activation { TR_ACTIVATION_NONE, TR_ACTIVATION_RELU } tr_activation;

typedef struct tr_linear_attr {
    tr_weight_layout layout;
    tr_activation activation;
} tr_linear_attr;

// Real tensors are all of one type: f32, bf16 or f16.
// in:  x [..., in], weight (layout), bias [out] or absent
// out: y [..., out]
extern const tr_op tr__op_linear;
// in:  dy [..., out], weight          out: dx [..., in]
extern const tr_op tr__op_linear_backward_input;
// in:  dy [..., out], x [..., in]     out: dweight (layout) f32, dbias [out] f32 or
//                                             absent
extern const tr_op tr__op_linear_backward_weight;
// The same without dweight: of x only the shape is looked at.
extern const tr_op tr__op_linear_backward_bias;

#endif
