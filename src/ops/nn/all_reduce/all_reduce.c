#include "ops/nn/all_reduce/all_reduce.h"

#include "ops/operand.h"

#include <string.h>

// They move elements as they are: the kernels are those of copy.
extern const tr_kernel tr__copy_reference;

static int pass_on(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 1;
}

static int sum_gradient(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_all_reduce, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(tr_all_reduce_attr));
    return 1;
}

const tr_op tr__op_all_reduce = {
    .name = "all_reduce",
    .attr_bytes = sizeof(tr_all_reduce_attr),
    .flags = TR_OP_EXCHANGE,
    .in_place = 1,
    .infer = tr__infer_as_input,
    .backward = pass_on,
    .reference = &tr__copy_reference,
};

const tr_op tr__op_all_reduce_gradient = {
    .name = "all_reduce_gradient",
    .attr_bytes = sizeof(tr_all_reduce_attr),
    .in_place = 1,
    .infer = tr__infer_as_input,
    .backward = sum_gradient,
    .reference = &tr__copy_reference,
};
