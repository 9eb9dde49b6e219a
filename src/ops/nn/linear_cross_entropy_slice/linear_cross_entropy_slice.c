#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"

#include "ops/nn/linear_cross_entropy_slice/operands.h"

extern const tr_kernel tr__lce_slice_reference, tr__lce_slice_backward_reference;

// The row of each of x's vectors in `running` or `best`.
static tr_shape row_shape(const tr_op_node *node, int64_t width) {
    tr_shape shape = node->in[HEAD_X].shape;
    shape.dim[shape.rank - 1] = width;
    return shape;
}

static tr_status check_running(const tr_op_node *node, int i, tr_error *err) {
    return tr__operand_shape(node, i, TR_F64, row_shape(node, RUNNING), err);
}

static tr_tensor_desc logits_of(const tr_op_node *node, int64_t classes) {
    return (tr_tensor_desc){TR_F32, row_shape(node, tr__lce_logits_row(classes))};
}

static tr_status slice_infer(const tr_op_node *node, tr_tensor_desc *out,
                             int *out_count, tr_error *err) {
    int64_t classes = 0;
    tr_status status = tr__operand_count(node, SLICE_INPUTS, SLICE_INPUTS, err);
    if (status == TR_OK) {
        status = tr__lce_check_inputs(node, &classes, err);
    }
    bool first = status == TR_OK && node->in[SLICE_BEFORE].dtype == TR_NONE &&
                 node->in[SLICE_BEST].dtype == TR_NONE;
    if (status == TR_OK && !first) {
        status = check_running(node, SLICE_BEFORE, err);
    }
    if (status == TR_OK && !first) {
        status =
            tr__operand_shape(node, SLICE_BEST, TR_F32, row_shape(node, BEST), err);
    }
    if (status == TR_OK) {
        const tr_lce_slice_attr *attr = node->attr;
        out[SLICE_RUNNING] = (tr_tensor_desc){TR_F64, row_shape(node, RUNNING)};
        out[SLICE_BEST_NOW] = (tr_tensor_desc){TR_F32, row_shape(node, BEST)};
        out[SLICE_LOGITS] = logits_of(node, classes);
        *out_count = attr->keeps_logits ? SLICE_RESULTS : SLICE_LOGITS;
    }
    return status;
}

static bool is_given_logits(const tr_op_node *node) {
    return node->in_count > SLICE_GIVEN && node->in[SLICE_GIVEN].dtype != TR_NONE;
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    int64_t classes = 0;
    tr_status status = tr__operand_count(node, SLICE_GIVEN, SLICE_BACKWARD_INPUTS, err);
    if (status == TR_OK) {
        status = tr__lce_check_inputs(node, &classes, err);
    }
    for (int i = SLICE_BEFORE; i <= SLICE_DAFTER && status == TR_OK; i++) {
        bool absent = i == SLICE_BEFORE && node->in[i].dtype == TR_NONE;
        status = absent ? TR_OK : check_running(node, i, err);
    }
    if (status == TR_OK && is_given_logits(node)) {
        tr_tensor_desc logits = logits_of(node, classes);
        status = tr__operand_shape(node, SLICE_GIVEN, TR_F32, logits.shape, err);
    }
    if (status == TR_OK) {
        out[HEAD_DX] = node->in[HEAD_X];
        out[HEAD_DWEIGHT] = tr__param_gradient(node->in[HEAD_WEIGHT]);
        out[HEAD_DBIAS] = tr__param_gradient(node->in[HEAD_BIAS]);
        out[SLICE_DBEFORE] = node->in[SLICE_BEFORE];
        *out_count = SLICE_BACKWARD_RESULTS;
    }
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_linear_cross_entropy_slice_backward,
        .in = {TR_IN(HEAD_X), TR_IN(HEAD_WEIGHT), TR_IN(HEAD_BIAS), TR_IN(HEAD_TARGETS),
               TR_IN(SLICE_BEFORE), TR_OUT(SLICE_RUNNING), TR_GRAD_OUT(SLICE_RUNNING),
               TR_OUT(SLICE_LOGITS)},
        .out = {TR_GRAD_IN(HEAD_X), TR_GRAD_IN(HEAD_WEIGHT), TR_GRAD_IN(HEAD_BIAS),
                TR_GRAD_IN(SLICE_BEFORE)},
    };
    if (node->in[HEAD_BIAS].dtype == TR_NONE) {
        rules[0].in[HEAD_BIAS] = (tr_ref)TR_ABSENT;
        rules[0].out[HEAD_DBIAS] = (tr_ref)TR_ABSENT;
    }
    if (node->in[SLICE_BEFORE].dtype == TR_NONE) {
        rules[0].in[SLICE_BEFORE] = (tr_ref)TR_ABSENT;
        rules[0].out[SLICE_DBEFORE] = (tr_ref)TR_ABSENT;
    }
    if (node->out_count == SLICE_LOGITS) {
        rules[0].in[SLICE_GIVEN] = (tr_ref){0};
    }
    memcpy(rules[0].attr, node->attr, sizeof(tr_lce_slice_attr));
    return 1;
}

const tr_op tr__op_linear_cross_entropy_slice = {
    .name = "head_slice",
    .attr_bytes = sizeof(tr_lce_slice_attr),
    .no_gradient = 1u << HEAD_TARGETS | 1u << SLICE_BEST,
    .infer = slice_infer,
    .backward = backward,
    .reference = &tr__lce_slice_reference,
};

const tr_op tr__op_linear_cross_entropy_slice_backward = {
    .name = "head_slice_backward",
    .attr_bytes = sizeof(tr_lce_slice_attr),
    .infer = backward_infer,
    .reference = &tr__lce_slice_backward_reference,
};
