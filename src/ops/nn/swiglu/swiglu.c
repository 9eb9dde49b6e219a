#include "ops/nn/swiglu/swiglu.h"

#include "ops/operand.h"

extern const tr_kernel tr__swiglu_reference, tr__swiglu_backward_reference;

// Input i is [..., 2 I]; *y becomes [..., I].
static tr_status check_pairs(const tr_op_node *node, int i, tr_shape *y,
                             tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_status status = tr__operand_real(node, i, err);
    if (status != TR_OK) {
        return status;
    }
    *y = node->in[i].shape;
    int64_t width = tr__shape_width(*y);
    if (y->rank < 2 || width % 2 != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: input %d has the shape %s, not rows of a gate and as many "
                       "values",
                       node->op->name, i, tr__shape_text(*y, text));
    }
    y->dim[y->rank - 1] = width / 2;
    return TR_OK;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_shape y;
    tr_status status = tr__operand_count(node, 1, 1, err);
    if (status == TR_OK) {
        status = check_pairs(node, 0, &y, err);
    }
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
    if (status == TR_OK) {
        status = check_pairs(node, 1, &y, err);
    }
    if (status == TR_OK) {
        status = tr__operand_shape(node, 0, node->in[1].dtype, y, err);
    }
    if (status == TR_OK) {
        out[0] = node->in[1];
        *out_count = 1;
    }
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){
        .op = &tr__op_swiglu_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0)},
        .out = {TR_GRAD_IN(0)},
    };
    return 1;
}

// Gates and values are shared alike.
static bool split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out) {
    (void)ranks;
    (void)rank;
    int64_t width = tr__shape_width(node->in[0].shape) / 2;
    int last = node->in[0].shape.rank - 1;
    out->in[0] = (tr_cut){.dim = last, .blocks = 2, .block = {width, width}};
    out->out[0] = (tr_cut){.dim = last, .blocks = 1, .block = {width}};
    return way == 0;
}

const tr_op tr__op_swiglu = {
    .name = "swiglu",
    .split = split,
    .infer = infer,
    .backward = backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__swiglu_reference,
};

const tr_op tr__op_swiglu_backward = {
    .name = "swiglu_backward",
    .infer = backward_infer,
    .reference = &tr__swiglu_backward_reference,
};
