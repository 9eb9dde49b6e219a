#ifndef TR_OPS_NN_CONTRASTIVE_CUDA_H
#define TR_OPS_NN_CONTRASTIVE_CUDA_H

#include "ops/nn/linear_cross_entropy/cuda.h"

// Of a text that asks, over the candidates so far: the sum of e^(logit - top), its own
// logit, and what the gradient of the scale gets.
typedef struct tr_cuda_pair_total {
    double top, sum, own, scale;
} tr_cuda_pair_total;

// One tile: rows of texts that ask, against text `text` of the groups [first_group,
// first_group + columns).
typedef struct tr_cuda_pair_tile_args {
    float *logits;              // [rows, columns] products, then gradients of them
    tr_cuda_pair_total *totals; // [rows]
    const float *pool;          // [groups, texts, row]
    const int32_t *number;      // [there, texts], of the micro-batch
    const float *scale;         // log of what products are multiplied by; or NULL:
    double factor;              // that
    double slope;               // the side's weight times the seed
    int64_t rows, columns, first_row, first_group, first_place, groups, texts, width,
        row;
    int32_t text, asks, own; // places in a group
    int32_t marked, mask_equal, unused;
} tr_cuda_pair_tile_args;

// each [rows]: what the rows' totals are to the sums of the loss.
typedef struct tr_cuda_pair_sums_args {
    const tr_cuda_pair_total *totals;
    tr_cuda_row_sums *each;
    double *scales; // [1] += the rows' shares of the scale's gradient; NULL: not wanted
    int64_t rows;
    double weight;
    int32_t anchors, unused; // anchors count, and may be correct
} tr_cuda_pair_sums_args;

// dscale: = scale, or +=.
typedef struct tr_cuda_pair_scale_args {
    const double *scale;
    float *dscale;
    int32_t add, unused;
} tr_cuda_pair_scale_args;

// Texts [there, texts, width] and their numbers into the pool, or gradients out of it;
// added. place i is that of group i.
typedef struct tr_cuda_pair_pool_args {
    const float *from;
    const int32_t *number; // NULL: out of the pool
    float *to;
    int64_t there, texts, width, groups, first_place;
} tr_cuda_pair_pool_args;

#endif
