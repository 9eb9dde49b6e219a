// The shortcut without parameters of residual networks (He et al., arXiv 1512.03385,
// option A): every stride-th pixel of each side, and channels of zeros after the given
// ones.
#ifndef TR_OPS_NN_SHORTCUT_SHORTCUT_H
#define TR_OPS_NN_SHORTCUT_SHORTCUT_H

#include <tranche/extend/op.h>

typedef struct tr_shortcut_attr {
    int stride;
    int channels;      // of y, at least those of x
    int height, width; // of x: only shortcut_backward, whose x is not given
    int given;         // channels of x, likewise
} tr_shortcut_attr;

// in:  x [B, H, W, C]   out: y [B, ceil(H / stride), ceil(W / stride), channels]
extern const tr_op tr__op_shortcut;
// in:  dy as y          out: dx [B, H, W, C]
extern const tr_op tr__op_shortcut_backward;

#endif
