// Convolution of images, channels last: y[b, i, j, o] = bias[o] + the sum over p, q, c
// of x[b, stride i + p - padding, stride j + q - padding, c] * weight[o, c, p, q],
// where x is 0 outside of the image. Weights as torch.nn.Conv2d has them.
#ifndef TR_OPS_NN_CONV2D_CONV2D_H
#define TR_OPS_NN_CONV2D_CONV2D_H

#include <tranche/extend/op.h>

typedef struct tr_conv2d_attr {
    int stride, padding;
    int height, width; // of x: only conv2d_backward_input, whose x is not given
} tr_conv2d_attr;

// in:  x [B, H, W, C], weight [O, C, P, Q], bias [O] (optional)
// out: y [B, (H + 2 padding - P) / stride + 1, likewise, O]
extern const tr_op tr__op_conv2d;
// in:  dy [B, H', W', O], weight [O, C, P, Q]
// out: dx [B, H, W, C]
extern const tr_op tr__op_conv2d_backward_input;
// in:  dy [B, H', W', O], x [B, H, W, C], weight (its shape alone: it may be NULL)
// out: dweight [O, C, P, Q], dbias [O]
extern const tr_op tr__op_conv2d_backward_weight;

#endif
