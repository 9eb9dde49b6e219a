#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

#include "ops/nn/linear_cross_entropy/operands.h"
#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__lce_reference, tr__lce_backward_reference,
    tr__lce_logits_reference, tr__lce_logits_rows_reference;

tr_status tr__lce_check_inputs(const tr_op_node *node, int64_t *vocabulary,
                               tr_error *err) {
    const tr_lce_attr *attr = node->attr;
    char weight[TR_SHAPE_TEXT], x[TR_SHAPE_TEXT];
    tr_dtype real = node->in[HEAD_X].dtype;
    tr_status status = tr__operand_real(node, HEAD_X, err);
    if (status == TR_OK) {
        status = tr__operand_dtype(node, HEAD_WEIGHT, real, err);
    }
    if (status != TR_OK) {
        return status;
    }
    bool in_first = attr->layout == TR_WEIGHT_IN_OUT;
    tr_shape shape = node->in[HEAD_WEIGHT].shape, of_x = node->in[HEAD_X].shape;
    int64_t width = tr__shape_width(of_x);
    if (of_x.rank < 2 || shape.rank != 2 || shape.dim[in_first ? 0 : 1] != width ||
        shape.dim[in_first ? 1 : 0] < 1) {
        return tr_fail(err, TR_USAGE, "%s: the weight %s (%s) does not fit x %s",
                       node->op->name, tr__shape_text(shape, weight),
                       in_first ? "[in, out]" : "[out, in]", tr__shape_text(of_x, x));
    }
    *vocabulary = shape.dim[in_first ? 1 : 0];
    if (node->in[HEAD_BIAS].dtype != TR_NONE) {
        status = tr__operand_shape(node, HEAD_BIAS, real, TR_SHAPE1(*vocabulary), err);
    }
    return status != TR_OK ? status
                           : tr__operand_shape(node, HEAD_TARGETS, TR_I32,
                                               tr__shape_lead(of_x), err);
}

static tr_status check_inputs(const tr_op_node *node, int64_t *vocabulary,
                              tr_error *err) {
    tr_status status = tr__operand_count(node, HEAD_INPUTS, HEAD_INPUTS, err);
    return status == TR_OK ? tr__lce_check_inputs(node, vocabulary, err) : status;
}

static tr_status head_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    int64_t vocabulary = 0;
    tr_status status = check_inputs(node, &vocabulary, err);
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
        *out_count = 1;
    }
    return status;
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    int64_t vocabulary = 0;
    tr_status status = check_inputs(node, &vocabulary, err);
    if (status == TR_OK) {
        out[HEAD_DX] = node->in[HEAD_X];
        out[HEAD_DWEIGHT] = tr__param_gradient(node->in[HEAD_WEIGHT]);
        out[HEAD_DBIAS] = tr__param_gradient(node->in[HEAD_BIAS]);
        out[HEAD_SUMS] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
        *out_count = 4;
    }
    return status;
}

static tr_status logits_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    int64_t vocabulary = 0;
    tr_status status = check_inputs(node, &vocabulary, err);
    if (status == TR_OK) {
        int64_t samples = node->in[HEAD_X].shape.dim[0];
        out[0] = (tr_tensor_desc){TR_F32, TR_SHAPE2(samples, vocabulary)};
        *out_count = 1;
    }
    return status;
}

static tr_status rows_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    int64_t vocabulary = 0;
    tr_status status = check_inputs(node, &vocabulary, err);
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){TR_F32, node->in[HEAD_X].shape};
        out[0].shape.dim[out[0].shape.rank - 1] = vocabulary;
        *out_count = 1;
    }
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_linear_cross_entropy_backward,
        .in = {TR_IN(HEAD_X), TR_IN(HEAD_WEIGHT), TR_IN(HEAD_BIAS),
               TR_IN(HEAD_TARGETS)},
        .out = {TR_GRAD_IN(HEAD_X), TR_GRAD_IN(HEAD_WEIGHT), TR_GRAD_IN(HEAD_BIAS),
                TR_OUT(0)},
    };
    if (node->in[HEAD_BIAS].dtype == TR_NONE) {
        rules[0].in[HEAD_BIAS] = (tr_ref)TR_ABSENT;
        rules[0].out[HEAD_DBIAS] = (tr_ref)TR_ABSENT;
    }
    memcpy(rules[0].attr, node->attr, sizeof(tr_lce_attr));
    return 1;
}

// A rank folds the classes that it has: slices of the head (graph/rewrites/split.c).
// Where there are few classes, all of them are sooner done than the exchange.
static bool split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out) {
    enum { CLASSES_LEAST = 16 };
    tr_lce_shared_attr attr = {.slice = {.keeps_logits = 1}};
    memcpy(&attr.slice.head, node->attr, sizeof attr.slice.head);
    int along = attr.slice.head.layout == TR_WEIGHT_IN_OUT ? 1 : 0;
    int64_t classes = node->in[HEAD_WEIGHT].shape.dim[along];
    attr.slice.first = tr__cut_first(classes, ranks, rank);
    attr.classes = tr__ceil_div(classes, ranks);
    memcpy(out->attr, &attr, sizeof attr);
    out->in[HEAD_X] = out->in[HEAD_TARGETS] = tr__uncut();
    out->in[HEAD_WEIGHT] = tr__cut_along(along);
    out->in[HEAD_BIAS] = tr__cut_along(0);
    out->out[0] = tr__uncut();
    out->partial_gradient = 1u << HEAD_X;
    out->expands = true;
    return way == 0 && classes >= CLASSES_LEAST * ranks;
}

const tr_op tr__op_linear_cross_entropy = {
    .name = "head",
    .attr_bytes = sizeof(tr_lce_attr),
    .split = split,
    .flags = TR_OP_LOSS,
    .no_gradient = 1u << HEAD_TARGETS,
    .infer = head_infer,
    .backward = backward,
    .reference = &tr__lce_reference,
};

const tr_op tr__op_linear_cross_entropy_backward = {
    .name = "head_backward",
    .attr_bytes = sizeof(tr_lce_attr),
    .infer = backward_infer,
    .reference = &tr__lce_backward_reference,
};

const tr_op tr__op_linear_cross_entropy_logits = {
    .name = "head_logits",
    .attr_bytes = sizeof(tr_lce_attr),
    .no_gradient = 1u << HEAD_TARGETS,
    .infer = logits_infer,
    .reference = &tr__lce_logits_reference,
};

const tr_op tr__op_linear_cross_entropy_logits_rows = {
    .name = "head_logits_rows",
    .attr_bytes = sizeof(tr_lce_attr),
    .no_gradient = 1u << HEAD_TARGETS,
    .infer = rows_infer,
    .reference = &tr__lce_logits_rows_reference,
};
