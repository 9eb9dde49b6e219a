// Root mean square normalization (Zhang and Sennrich, arXiv 1910.07467, eq. 4):
// y = x / sqrt(mean(x^2) + epsilon) * weight, along the last side.
#ifndef TR_OPS_RMS_NORM_H
#define TR_OPS_RMS_NORM_H

#include <tranche/op.h>

typedef struct tr_rms_norm_attr {
    float epsilon;
} tr_rms_norm_attr;

// in:  x [..., C], weight [C]
// out: y [..., C], rstd [...]   (both cheap: recomputed from x)
extern const tr_op tr__op_rms_norm;
// in:  dy [..., C], x [..., C], rstd [...], weight [C]
// out: dx [..., C], dweight [C]
extern const tr_op tr__op_rms_norm_backward;

#endif
