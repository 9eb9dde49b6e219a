// Pooling of images, channels last, as torch.nn.AvgPool2d and MaxPool2d do it: what is
// outside of the image counts as 0 in an average, and not at all in a maximum, whose
// gradient goes to the first of the largest, row by row.
#ifndef TR_OPS_NN_POOL_POOL_H
#define TR_OPS_NN_POOL_POOL_H

#include <tranche/extend/op.h>

typedef enum tr_pool_kind { TR_POOL_AVERAGE, TR_POOL_MAX } tr_pool_kind;

typedef struct tr_pool_attr {
    tr_pool_kind kind;
    int kernel;          // side of the window; 0: the whole image, whatever its sides
    int stride, padding; // of the window; padding at most half of the kernel
} tr_pool_attr;

// in:  x [B, H, W, C]
// out: y [B, H', W', C]; of the whole image [B, C]
extern const tr_op tr__op_pool;
// in:  dy as y, x [B, H, W, C] (average: its shape alone, it may be NULL)
// out: dx [B, H, W, C]
extern const tr_op tr__op_pool_average_backward;
extern const tr_op tr__op_pool_max_backward;

#endif
