#include "ops/nn/dropout/dropout.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__dropout_reference;

tr_status tr__dropout_check(const char *op_name, float probability, tr_error *err) {
    if (!(probability >= 0 && probability < 1)) {
        return tr_fail(err, TR_USAGE,
                       "%s: the dropout probability is %g and must be in [0, 1)",
                       op_name, (double)probability);
    }
    return TR_OK;
}

void tr__dropout_rule(const tr_dropout_attr *attr, tr_ref from, tr_ref to,
                      tr_rule *rule) {
    *rule = (tr_rule){.in = {from}, .out = {to}};
    if (attr->probability > 0) {
        rule->op = &tr__op_dropout;
        memcpy(rule->attr, attr, sizeof *attr);
    }
}

bool tr__dropout_split(const tr_op_node *node, int64_t ranks, int64_t rank,
                       tr_dropout_attr *drops, tr_split *out) {
    drops->parts = (int32_t)ranks;
    drops->part = (int32_t)rank;
    return tr__split_tokens(node, ranks, out);
}

bool tr__dropout_split_alone(const tr_op_node *node, int way, int64_t ranks,
                             int64_t rank, tr_split *out) {
    tr_dropout_attr *attr = (tr_dropout_attr *)(void *)out->attr;
    return way == 0 && tr__dropout_split(node, ranks, rank, attr, out);
}

static tr_status dropout_infer(const tr_op_node *node, tr_tensor_desc *out,
                               int *out_count, tr_error *err) {
    const tr_dropout_attr *attr = node->attr;
    tr_status status = tr__dropout_check(node->op->name, attr->probability, err);
    return status == TR_OK ? tr__operand_same(node, 1, out, out_count, err) : status;
}

static int dropout_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    tr__dropout_rule(node->attr, (tr_ref)TR_GRAD_OUT(0), (tr_ref)TR_GRAD_IN(0),
                     &rules[0]);
    return 1;
}

const tr_op tr__op_dropout = {
    .name = "dropout",
    .attr_bytes = sizeof(tr_dropout_attr),
    .split = tr__dropout_split_alone,
    .in_place = 1 + 0,
    .infer = dropout_infer,
    .backward = dropout_backward,
    .recompute_class = {TR_RECOMPUTE_RESIDUAL},
    .reference = &tr__dropout_reference,
};
