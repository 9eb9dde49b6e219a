// Convolution of images, channels last: y[b, i, j, o] = bias[o] + the sum over p, q, c
// of x[b, stride i + dilation p - padding, likewise of j and q, c] * weight[o, c, p,
// q], where x is 0 outside of the image. In groups the channels of x and of y are cut
// into as many parts, and each part of y sees its part of x alone. Weights as
// torch.nn.Conv2d has them.
#ifndef TR_OPS_NN_CONV2D_CONV2D_H
#define TR_OPS_NN_CONV2D_CONV2D_H

#include <tranche/extend/op.h>

typedef struct tr_conv2d_attr {
    int stride[2], padding[2], dilation[2]; // along the height, the width
    int groups;
    int height, width; // of x: only conv2d_backward_input, whose x is not given
} tr_conv2d_attr;

// in:  x [B, H, W, C], weight [O, C / groups, P, Q], bias [O] (optional)
// out: y [B, (H + 2 padding - dilation (P - 1) - 1) / stride + 1, likewise, O]
extern const tr_op tr__op_conv2d;
// in:  dy [B, H', W', O], weight [O, C / groups, P, Q]
// out: dx [B, H, W, C]
extern const tr_op tr__op_conv2d_backward_input;
// in:  dy [B, H', W', O], x [B, H, W, C], weight (its shape alone: it may be NULL)
// out: dweight [O, C / groups, P, Q], dbias [O]
extern const tr_op tr__op_conv2d_backward_weight;

#endif
