// Root mean square normalization (Zhang and Sennrich, arXiv 1910.07467, eq. 4):
// y = x / sqrt(mean(x^2) + epsilon) * weight, along the last side; or along each head
// of a row of queries, keys and values, as Qwen3 does (Yang et al., arXiv 2505.09388).
#ifndef TR_OPS_NN_RMS_NORM_RMS_NORM_H
#define TR_OPS_NN_RMS_NORM_RMS_NORM_H

#include <tranche/extend/op.h>

typedef struct tr_rms_norm_attr {
    float epsilon;
    // Of heads: D, their elements, and how many there are of queries and of keys, each
    // with weights of their own; the rest of a row passes. depth 0: rows are
    // normalized.
    int32_t depth, queries, keys;
} tr_rms_norm_attr;

// in:  x [..., C], weight [C], both f32, bf16 or f16; of heads: weight [2 D]
// out: y [..., C], rstd [...] f32, of heads [..., queries + keys]   (both cheap:
//      recomputed from x)
extern const tr_op tr__op_rms_norm;
// in:  dy [..., C], x [..., C], rstd, weight
// out: dx [..., C], dweight f32
extern const tr_op tr__op_rms_norm_backward;

typedef struct tr_rms_norm_sizes {
    int64_t rows, width; // of x
    int64_t depth;       // elements that are normalized together
    int64_t heads;       // of them in a row, from its beginning
    int64_t queries;     // of these, with the first weights
    int64_t weights;     // elements of weight
    float epsilon;
} tr_rms_norm_sizes;

// x: its shape; attr: tr_rms_norm_attr.
tr_rms_norm_sizes tr__rms_norm_sizes(tr_shape x, const void *attr);

// The first weight of a head.
static inline int64_t tr__rms_norm_weight(const tr_rms_norm_sizes *s, int64_t head) {
    return head < s->queries ? 0 : s->depth;
}

#endif
