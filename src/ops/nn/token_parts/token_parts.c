#include "ops/nn/token_parts/token_parts.h"

#include "ops/operand.h"

#include <string.h>

// reduce_scatter moves elements as they are: its kernels are those of copy.
extern const tr_kernel tr__copy_reference, tr__token_parts_reference;

static tr_status check(const tr_op_node *node, tr_token_parts_attr *attr,
                       tr_error *err) {
    char text[TR_SHAPE_TEXT];
    memcpy(attr, node->attr, sizeof *attr);
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status == TR_OK && (node->in[0].shape.rank < 2 || attr->ranks < 1 ||
                            attr->rank < 0 || attr->rank >= attr->ranks)) {
        return tr_fail(err, TR_USAGE, "%s: no tokens of %s for rank %lld of %lld",
                       node->op->name, tr__shape_text(node->in[0].shape, text),
                       (long long)attr->rank, (long long)attr->ranks);
    }
    return status;
}

static tr_status gather_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    tr_token_parts_attr attr;
    tr_status status = check(node, &attr, err);
    if (status == TR_OK) {
        out[0] = node->in[0];
        out[0].shape.dim[1] *= attr.ranks;
        *out_count = 1;
    }
    return status;
}

static tr_status part_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_token_parts_attr attr;
    char text[TR_SHAPE_TEXT];
    tr_status status = check(node, &attr, err);
    if (status == TR_OK && node->in[0].shape.dim[1] % attr.ranks != 0) {
        return tr_fail(err, TR_USAGE, "%s: %lld ranks cannot share the tokens of %s",
                       node->op->name, (long long)attr.ranks,
                       tr__shape_text(node->in[0].shape, text));
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        out[0].shape.dim[1] /= attr.ranks;
        *out_count = 1;
    }
    return status;
}

static tr_rule rule_of(const tr_op_node *node, const tr_op *op, tr_ref in, tr_ref out) {
    tr_rule rule = {.op = op, .in = {in}, .out = {out}};
    memcpy(rule.attr, node->attr, sizeof(tr_token_parts_attr));
    return rule;
}

static int gather_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    const tr_token_parts_attr *attr = node->attr;
    tr_ref whole = TR_GRAD_OUT(0), part = TR_GRAD_IN(0), sum = TR_TEMP(0);
    if (!attr->shared) {
        rules[0] = rule_of(node, &tr__op_own_part, whole, part);
        return 1;
    }
    rules[0] = rule_of(node, &tr__op_reduce_scatter, whole, sum);
    rules[0].temp[0] = node->out[0];
    rules[1] = rule_of(node, &tr__op_own_part, sum, part);
    return 2;
}

static int part_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = rule_of(node, &tr__op_all_gather, (tr_ref)TR_GRAD_OUT(0),
                       (tr_ref)TR_GRAD_IN(0));
    return 1;
}

static int pass_on(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 1;
}

// What is gathered is never kept: only so does no rank keep another's part.
const tr_op tr__op_all_gather = {
    .name = "all_gather",
    .attr_bytes = sizeof(tr_token_parts_attr),
    .flags = TR_OP_EXCHANGE | TR_OP_GATHERS,
    .infer = gather_infer,
    .backward = gather_backward,
    .recompute_class = {TR_RECOMPUTE_ALWAYS},
    .reference = &tr__token_parts_reference,
};

const tr_op tr__op_reduce_scatter = {
    .name = "reduce_scatter",
    .attr_bytes = sizeof(tr_token_parts_attr),
    .flags = TR_OP_EXCHANGE | TR_OP_REDUCES,
    .in_place = 1,
    .infer = tr__infer_as_input,
    .backward = pass_on,
    .reference = &tr__copy_reference,
};

const tr_op tr__op_own_part = {
    .name = "own_part",
    .attr_bytes = sizeof(tr_token_parts_attr),
    .infer = part_infer,
    .backward = part_backward,
    .reference = &tr__token_parts_reference,
};
