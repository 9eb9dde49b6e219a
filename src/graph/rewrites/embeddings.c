// Inference of models that embed texts: the embeddings in the place of the loss.
#include "graph/rewrite.h"
#include "ops/nn/contrastive/contrastive.h"
#include "ops/nn/dropout/dropout.h"
#include "ops/nn/normalize/normalize.h"

#include <string.h>

// x [B, texts, C] -> the same, with rows of length 1 or as they are.
static bool give_embeddings(tr_graph *graph, const tr_rewrite_node *node,
                            tr_value *results) {
    tr_contrastive_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    const tr_dropout_attr nothing = {0};
    results[0] = attr.normalize
                     ? tr_graph_op(graph, &tr__op_normalize, NULL, node->in, 1, NULL)
                     : tr_graph_op(graph, &tr__op_dropout, &nothing, node->in, 1, NULL);
    return true;
}

const tr_rewrite tr__rewrites_embeddings[] = {
    {TR_REWRITE_LOGITS, &tr__op_contrastive, NULL, give_embeddings},
    {TR_REWRITE_ALL_LOGITS, &tr__op_contrastive, NULL, give_embeddings},
    {0},
};
