#include "ops/nn/silu/silu.h"

#include "ops/operand.h"

extern const tr_kernel tr__silu_reference, tr__silu_backward_reference;

static tr_status silu_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    return tr__operand_same(node, 1, out, out_count, err);
}

static tr_status silu_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                     int *out_count, tr_error *err) {
    return tr__operand_same(node, 2, out, out_count, err);
}

static int silu_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){
        .op = &tr__op_silu_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0)},
        .out = {TR_GRAD_IN(0)},
    };
    return 1;
}

const tr_op tr__op_silu = {
    .name = "silu",
    .split = tr__split_elements,
    .infer = silu_infer,
    .backward = silu_backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__silu_reference,
};

const tr_op tr__op_silu_backward = {
    .name = "silu_backward",
    .infer = silu_backward_infer,
    .reference = &tr__silu_backward_reference,
};
