#include "ops/nn/softmax_parts/softmax_parts.h"

#include "ops/nn/softmax_parts/operands.h"

extern const tr_kernel tr__softmax_part_kernel, tr__softmax_part_backward_kernel;
extern const tr_kernel tr__softmax_join_kernel, tr__softmax_join_backward_kernel;

static tr_shape with_width(tr_shape shape, int64_t width) {
    shape.dim[shape.rank - 1] = width;
    return shape;
}

static tr_tensor_desc running_of(tr_shape shape) {
    return (tr_tensor_desc){TR_F64, with_width(shape, RUNNING)};
}

static tr_tensor_desc best_of(tr_shape shape) {
    return (tr_tensor_desc){TR_F32, with_width(shape, BEST)};
}

// Input i has rows of so many elements (0: of parts of ranks).
static tr_status check_rows(const tr_op_node *node, int i, tr_dtype dtype,
                            int64_t width, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_shape shape = node->in[i].shape;
    tr_status status = tr__operand_dtype(node, i, dtype, err);
    if (status != TR_OK) {
        return status;
    }
    int64_t has = shape.rank > 0 ? tr__shape_width(shape) : 0;
    bool fits = shape.rank >= 2 && (width > 0 ? has == width : has % PART == 0);
    return fits && has > 0 ? TR_OK
                           : tr_fail(err, TR_USAGE, "%s: input %d has the shape %s",
                                     node->op->name, i, tr__shape_text(shape, text));
}

static tr_status check_attr(const tr_op_node *node, tr_softmax_part_attr *attr,
                            tr_error *err) {
    memcpy(attr, node->attr, sizeof *attr);
    return attr->ranks > 0 && attr->rank >= 0 && attr->rank < attr->ranks
               ? TR_OK
               : tr_fail(err, TR_USAGE, "%s: rank %lld of %lld", node->op->name,
                         (long long)attr->rank, (long long)attr->ranks);
}

static tr_status part_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_softmax_part_attr attr;
    tr_status status = tr__operand_count(node, 2, 2, err);
    status = status == TR_OK ? check_attr(node, &attr, err) : status;
    status = status == TR_OK ? check_rows(node, 0, TR_F64, RUNNING, err) : status;
    if (status == TR_OK) {
        tr_shape best = with_width(node->in[0].shape, BEST);
        status = tr__operand_shape(node, 1, TR_F32, best, err);
    }
    if (status == TR_OK) {
        out[0] =
            (tr_tensor_desc){TR_F32, with_width(node->in[0].shape, PART * attr.ranks)};
        *out_count = 1;
    }
    return status;
}

static tr_status part_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                     int *out_count, tr_error *err) {
    tr_softmax_part_attr attr;
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? check_attr(node, &attr, err) : status;
    status =
        status == TR_OK ? check_rows(node, 0, TR_F32, PART * attr.ranks, err) : status;
    if (status == TR_OK) {
        out[0] = running_of(node->in[0].shape);
        *out_count = 1;
    }
    return status;
}

static int part_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = &tr__op_softmax_part_backward,
                         .in = {TR_GRAD_OUT(0)},
                         .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(tr_softmax_part_attr));
    return 1;
}

static tr_status join_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? check_rows(node, JOIN_PARTS, TR_F32, 0, err) : status;
    if (status == TR_OK) {
        out[0] = running_of(node->in[JOIN_PARTS].shape);
        out[1] = best_of(node->in[JOIN_PARTS].shape);
        *out_count = 2;
    }
    return status;
}

static tr_status join_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                     int *out_count, tr_error *err) {
    tr_status status =
        tr__operand_count(node, JOIN_BACKWARD_INPUTS, JOIN_BACKWARD_INPUTS, err);
    status = status == TR_OK ? check_rows(node, JOIN_PARTS, TR_F32, 0, err) : status;
    for (int i = JOIN_RUNNING; i <= JOIN_DRUNNING && status == TR_OK; i++) {
        tr_shape running = with_width(node->in[JOIN_PARTS].shape, RUNNING);
        status = tr__operand_shape(node, i, TR_F64, running, err);
    }
    if (status == TR_OK) {
        out[0] = node->in[JOIN_PARTS];
        *out_count = 1;
    }
    return status;
}

static int join_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &tr__op_softmax_join_backward,
                         .in = {TR_IN(JOIN_PARTS), TR_OUT(0), TR_GRAD_OUT(0)},
                         .out = {TR_GRAD_IN(JOIN_PARTS)}};
    return 1;
}

const tr_op tr__op_softmax_part = {
    .name = "softmax_part",
    .attr_bytes = sizeof(tr_softmax_part_attr),
    .no_gradient = 1u << 1,
    .infer = part_infer,
    .backward = part_backward,
    .reference = &tr__softmax_part_kernel,
};

const tr_op tr__op_softmax_part_backward = {
    .name = "softmax_part_backward",
    .attr_bytes = sizeof(tr_softmax_part_attr),
    .infer = part_backward_infer,
    .reference = &tr__softmax_part_backward_kernel,
};

const tr_op tr__op_softmax_join = {
    .name = "softmax_join",
    .infer = join_infer,
    .backward = join_backward,
    .reference = &tr__softmax_join_kernel,
};

const tr_op tr__op_softmax_join_backward = {
    .name = "softmax_join_backward",
    .infer = join_backward_infer,
    .reference = &tr__softmax_join_backward_kernel,
};
