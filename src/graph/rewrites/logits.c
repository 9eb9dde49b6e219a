// Inference: the logits in the place of the loss.
#include "graph/rewrite.h"
#include "ops/nn/cross_entropy/cross_entropy.h"
#include "ops/nn/element_loss/element_loss.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

static bool give_last(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    return tr_rewrite_as(graph, node, &tr__op_linear_cross_entropy_logits, node->attr,
                         results);
}

static bool give_all(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    return tr_rewrite_as(graph, node, &tr__op_linear_cross_entropy_logits_rows,
                         node->attr, results);
}

static bool give_numbers(tr_graph *graph, const tr_rewrite_node *node,
                         tr_value *results) {
    return tr_rewrite_as(graph, node, &tr__op_element_logits, node->attr, results);
}

static bool give_classes(tr_graph *graph, const tr_rewrite_node *node,
                         tr_value *results) {
    return tr_rewrite_as(graph, node, &tr__op_cross_entropy_logits, node->attr,
                         results);
}

const tr_rewrite tr__rewrites_logits[] = {
    {TR_REWRITE_LOGITS, &tr__op_linear_cross_entropy, NULL, give_last},
    {TR_REWRITE_ALL_LOGITS, &tr__op_linear_cross_entropy, NULL, give_all},
    {TR_REWRITE_LOGITS, &tr__op_element_loss, NULL, give_numbers},
    {TR_REWRITE_ALL_LOGITS, &tr__op_element_loss, NULL, give_numbers},
    {TR_REWRITE_LOGITS, &tr__op_cross_entropy, NULL, give_classes},
    {TR_REWRITE_ALL_LOGITS, &tr__op_cross_entropy, NULL, give_classes},
    {0},
};
