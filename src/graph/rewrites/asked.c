// Where nothing is trained: nothing is dropped, and batches are normalized by what was
// seen in training.
#include "graph/rewrite.h"
#include "ops/nn/attention/attention.h"
#include "ops/nn/batch_norm/batch_norm.h"
#include "ops/nn/dropout/dropout.h"
#include "ops/nn/layer_norm/layer_norm.h"
#include "ops/nn/residual/residual.h"

#include <string.h>

static bool keep_all(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    tr_dropout_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    attr.probability = 0;
    return tr_rewrite_as(graph, node, node->op, &attr, results);
}

static bool keep_branch(tr_graph *graph, const tr_rewrite_node *node,
                        tr_value *results) {
    tr_layer_norm_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    attr.dropout.probability = 0;
    return tr_rewrite_as(graph, node, node->op, &attr, results);
}

static bool keep_probabilities(tr_graph *graph, const tr_rewrite_node *node,
                               tr_value *results) {
    tr_attention_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    attr.dropout = 0;
    return tr_rewrite_as(graph, node, node->op, &attr, results);
}

static bool normalize_by_running(tr_graph *graph, const tr_rewrite_node *node,
                                 tr_value *results) {
    tr_batch_norm_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    attr.running = true;
    return tr_rewrite_as(graph, node, node->op, &attr, results);
}

const tr_rewrite tr__rewrites_asked[] = {
    {TR_REWRITE_ASKED, &tr__op_dropout, NULL, keep_all},
    {TR_REWRITE_ASKED, &tr__op_residual, NULL, keep_all},
    {TR_REWRITE_ASKED, &tr__op_residual_norm, NULL, keep_branch},
    {TR_REWRITE_ASKED, &tr__op_attention, NULL, keep_probabilities},
    {TR_REWRITE_ASKED, &tr__op_batch_norm, NULL, normalize_by_running},
    {0},
};
