// The loss of models that embed texts. What is here of it is what inference gives in
// its place, the embeddings themselves (graph/rewrites/embeddings.c). It has no
// backward and no kernel yet, so run files with "task": "contrastive" are not trained
// (run/resolve/resolve_task.c).
#ifndef TR_OPS_NN_CONTRASTIVE_CONTRASTIVE_H
#define TR_OPS_NN_CONTRASTIVE_CONTRASTIVE_H

#include <tranche/extend/op.h>

typedef struct tr_contrastive_attr {
    int32_t normalize; // 1: embeddings have length 1
} tr_contrastive_attr;

// in:  x [B, texts, C] f32; targets [B, texts] i32, below 0: there is no text
// out: sums [TR_SUMS] f64
extern const tr_op tr__op_contrastive;

#endif
