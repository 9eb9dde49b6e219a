#include "ops/nn/element_loss/element_loss.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__element_loss_reference, tr__element_loss_backward_reference,
    tr__element_logits_reference;

static tr_status check(const tr_op_node *node, tr_error *err) {
    tr_element_loss_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    tr_status status = tr__operand_count(node, 2, 2, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    status = status == TR_OK
                 ? tr__operand_shape(node, 1, TR_F32, node->in[0].shape, err)
                 : status;
    if (status == TR_OK &&
        (attr.kind < TR_ELEMENTS_BINARY || attr.kind > TR_ELEMENTS_SQUARE)) {
        return tr_fail(err, TR_USAGE, "%s: kind %d is none of the two losses",
                       node->op->name, (int)attr.kind);
    }
    return status;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    return tr__infer_loss(check(node, err), out, out_count);
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    return tr__infer_loss_backward(node, check(node, err), out, out_count);
}

static tr_status logits_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    return tr__infer_logits(node, check(node, err), out, out_count);
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = &tr__op_element_loss_backward,
                         .in = {TR_IN(0), TR_IN(1)},
                         .out = {TR_GRAD_IN(0), TR_OUT(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(tr_element_loss_attr));
    return 1;
}

const tr_op tr__op_element_loss = {
    .name = "element_loss",
    .attr_bytes = sizeof(tr_element_loss_attr),
    .flags = TR_OP_LOSS,
    .no_gradient = 1 << 1,
    .infer = infer,
    .backward = backward,
    .reference = &tr__element_loss_reference,
};

const tr_op tr__op_element_loss_backward = {
    .name = "element_loss_backward",
    .attr_bytes = sizeof(tr_element_loss_attr),
    .infer = backward_infer,
    .reference = &tr__element_loss_backward_reference,
};

const tr_op tr__op_element_logits = {
    .name = "element_logits",
    .attr_bytes = sizeof(tr_element_loss_attr),
    .no_gradient = 1 << 1,
    .infer = logits_infer,
    .reference = &tr__element_logits_reference,
};
