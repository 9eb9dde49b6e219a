#include "ops/nn/pool/pool.h"

#include "ops/nn/pool/sizes.h"

extern const tr_kernel tr__pool_reference, tr__pool_backward_reference;

static tr_status check_attr(const tr_op_node *node, tr_error *err) {
    const tr_pool_attr *a = node->attr;
    bool good = a->kernel == 0 || (a->kernel > 0 && a->stride > 0 && a->padding >= 0 &&
                                   a->padding <= a->kernel / 2);
    return good ? TR_OK
                : tr_fail(err, TR_USAGE, "%s: a window of %d, stride %d, padding %d",
                          node->op->name, a->kernel, a->stride, a->padding);
}

// The shape of y for an x that is input i.
static tr_status pooled_shape(const tr_op_node *node, int i, tr_shape *y,
                              tr_error *err) {
    const tr_pool_attr *attr = node->attr;
    char text[TR_SHAPE_TEXT];
    tr_status status = check_attr(node, err);
    status = status == TR_OK ? tr__operand_real(node, i, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_shape x = node->in[i].shape;
    int64_t rows = x.rank == 4 ? tr__pool_windows(attr, x.dim[1]) : 0;
    int64_t columns = x.rank == 4 ? tr__pool_windows(attr, x.dim[2]) : 0;
    if (rows < 1 || columns < 1) {
        return tr_fail(err, TR_USAGE,
                       "%s: no window fits into the shape %s ([B, H, W, C])",
                       node->op->name, tr__shape_text(x, text));
    }
    *y = attr->kernel == 0 ? TR_SHAPE2(x.dim[0], x.dim[3])
                           : TR_SHAPE4(x.dim[0], rows, columns, x.dim[3]);
    return TR_OK;
}

static tr_status pool_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_shape y;
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? pooled_shape(node, 0, &y, err) : status;
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){node->in[0].dtype, y};
        *out_count = 1;
    }
    return status;
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    tr_shape y;
    tr_status status = tr__operand_count(node, 2, 2, err);
    status = status == TR_OK ? pooled_shape(node, 1, &y, err) : status;
    status = status == TR_OK ? tr__operand_shape(node, 0, node->in[1].dtype, y, err)
                             : status;
    if (status == TR_OK) {
        out[0] = node->in[1];
        *out_count = 1;
    }
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    const tr_pool_attr *attr = node->attr;
    rules[0] = (tr_rule){
        .op = attr->kind == TR_POOL_MAX ? &tr__op_pool_max_backward
                                        : &tr__op_pool_average_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0)},
        .out = {TR_GRAD_IN(0)},
    };
    memcpy(rules[0].attr, attr, sizeof *attr);
    return 1;
}

const tr_op tr__op_pool = {
    .name = "pool",
    .attr_bytes = sizeof(tr_pool_attr),
    .infer = pool_infer,
    .backward = backward,
    .reference = &tr__pool_reference,
};

const tr_op tr__op_pool_average_backward = {
    .name = "pool_average_backward",
    .attr_bytes = sizeof(tr_pool_attr),
    .shape_only = 1 << 1,
    .infer = backward_infer,
    .reference = &tr__pool_backward_reference,
};

const tr_op tr__op_pool_max_backward = {
    .name = "pool_max_backward",
    .attr_bytes = sizeof(tr_pool_attr),
    .infer = backward_infer,
    .reference = &tr__pool_backward_reference,
};
