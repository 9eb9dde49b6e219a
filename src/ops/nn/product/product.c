#include "ops/nn/product/sizes.h"
#include "ops/operand.h"

extern const tr_kernel tr__product_reference;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_product_attr attr;
    char of_a[TR_SHAPE_TEXT], of_b[TR_SHAPE_TEXT];
    memcpy(&attr, node->attr, sizeof attr);
    tr_status status = tr__operand_count(node, 2, 2, err);
    for (int i = 0; i < 2 && status == TR_OK; i++) {
        status = tr__operand_real(node, i, err);
    }
    if (status == TR_OK) {
        status = tr__operand_dtype(node, 1, node->in[0].dtype, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_shape a = node->in[0].shape, b = node->in[1].shape;
    bool fits = a.rank == 4 && b.rank == 4 && a.dim[0] == b.dim[0] &&
                a.dim[1] == b.dim[1] &&
                a.dim[attr.a_transposed ? 2 : 3] == b.dim[attr.b_transposed ? 3 : 2];
    if (!fits) {
        return tr_fail(
            err, TR_USAGE,
            "product: a of the shape %s%s and b of the shape %s%s are not [B, "
            "N, M, K] and [B, N, K, O]",
            tr__shape_text(a, of_a), attr.a_transposed ? ", transposed," : "",
            tr__shape_text(b, of_b), attr.b_transposed ? ", transposed," : "");
    }
    out[0] =
        (tr_tensor_desc){node->in[0].dtype,
                         TR_SHAPE4(a.dim[0], a.dim[1], a.dim[attr.a_transposed ? 3 : 2],
                                   b.dim[attr.b_transposed ? 2 : 3])};
    *out_count = 1;
    return TR_OK;
}

static tr_rule rule_of(tr_ref a, bool a_transposed, tr_ref b, bool b_transposed,
                       int result) {
    tr_product_attr attr = {a_transposed, b_transposed};
    tr_rule rule = {.op = &tr__op_product, .in = {a, b}, .out = {TR_GRAD_IN(result)}};
    memcpy(rule.attr, &attr, sizeof attr);
    return rule;
}

// da = dy b' and db = a' dy, or what is transposed of these.
static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    const tr_ref dy = TR_GRAD_OUT(0), a = TR_IN(0), b = TR_IN(1);
    tr_product_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    rules[0] = attr.a_transposed ? rule_of(b, attr.b_transposed, dy, true, 0)
                                 : rule_of(dy, false, b, !attr.b_transposed, 0);
    rules[1] = attr.b_transposed ? rule_of(dy, true, a, attr.a_transposed, 1)
                                 : rule_of(a, !attr.a_transposed, dy, false, 1);
    return 2;
}

const tr_op tr__op_product = {
    .name = "product",
    .attr_bytes = sizeof(tr_product_attr),
    .infer = infer,
    .backward = backward,
    .recompute_class = {TR_RECOMPUTE_ATTENTION},
    .reference = &tr__product_reference,
};
