// One row for each text of a sample: the mean of its tokens, its first ("[CLS]") or its
// last one (Reimers and Gurevych, Sentence-BERT, arXiv 1908.10084, section 3).
#ifndef TR_OPS_NN_TEXT_POOL_TEXT_POOL_H
#define TR_OPS_NN_TEXT_POOL_TEXT_POOL_H

#include <tranche/extend/graph.h>
#include <tranche/extend/op.h>

typedef struct tr_text_pool_attr {
    int32_t kind;  // tr_text_pooling
    int32_t texts; // rows of a sample
} tr_text_pool_attr;

// in:  x [B, S, C]
//      positions [B, S] i32 (ops/nn/positions.h), or absent: a sample is one text
// out: y [B, texts, C]: row k is the k-th document of the sample; documents behind the
//      last row count as nothing, and rows without a document are zeros
extern const tr_op tr__op_text_pool;
// in:  dy [B, texts, C], x (its shape alone), positions      out: dx [B, S, C]
extern const tr_op tr__op_text_pool_backward;

#endif
