#include "ops/rms_norm/rms_norm.h"

#include "backend/cpu/isa.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__rms_norm_reference, tr__rms_norm_backward_reference;
extern const tr_kernel tr__rms_norm_kernel_generic,
    tr__rms_norm_backward_kernel_generic;
#if defined(__x86_64__)
extern const tr_kernel tr__rms_norm_kernel_avx2, tr__rms_norm_backward_kernel_avx2;
extern const tr_kernel tr__rms_norm_kernel_avx512, tr__rms_norm_backward_kernel_avx512;
#endif

static const tr_kernel *const norm_cpu[TR_ISA_COUNT] =
    TR_ISA_TABLE(&tr__rms_norm_kernel);
static const tr_kernel *const backward_cpu[TR_ISA_COUNT] =
    TR_ISA_TABLE(&tr__rms_norm_backward_kernel);

static tr_status check_rows(const tr_op_node *node, int i, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_status status = tr__operand_dtype(node, i, TR_F32, err);
    if (status == TR_OK && node->in[i].shape.rank < 2) {
        return tr_fail(err, TR_USAGE, "%s: input %d has the shape %s, not rows",
                       node->op->name, i, tr__shape_text(node->in[i].shape, text));
    }
    return status;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_status status = tr__operand_count(node, 2, 2, err);
    status = status == TR_OK ? check_rows(node, 0, err) : status;
    if (status == TR_OK) {
        tr_shape weight = TR_SHAPE1(tr__shape_width(node->in[0].shape));
        status = tr__operand_shape(node, 1, TR_F32, weight, err);
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        out[1] = (tr_tensor_desc){TR_F32, tr__shape_lead(node->in[0].shape)};
        *out_count = 2;
    }
    return status;
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 4, 4, err);
    status = status == TR_OK ? check_rows(node, 0, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_shape x = node->in[0].shape, weight = TR_SHAPE1(tr__shape_width(x));
    if ((status = tr__operand_shape(node, 1, TR_F32, x, err)) != TR_OK ||
        (status = tr__operand_shape(node, 2, TR_F32, tr__shape_lead(x), err)) !=
            TR_OK ||
        (status = tr__operand_shape(node, 3, TR_F32, weight, err)) != TR_OK) {
        return status;
    }
    out[0] = node->in[1];
    out[1] = node->in[3];
    *out_count = 2;
    return TR_OK;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &tr__op_rms_norm_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(0), TR_OUT(1), TR_IN(1)},
                         .out = {TR_GRAD_IN(0), TR_GRAD_IN(1)}};
    return 1;
}

static bool recompute(const tr_op_node *node, tr_rule *rule) {
    *rule = (tr_rule){.op = &tr__op_rms_norm,
                      .in = {TR_IN(0), TR_IN(1)},
                      .out = {TR_OUT(0), TR_OUT(1)}};
    memcpy(rule->attr, node->attr, sizeof(tr_rms_norm_attr));
    return true;
}

const tr_op tr__op_rms_norm = {
    .name = "rms_norm",
    .attr_bytes = sizeof(tr_rms_norm_attr),
    .infer = infer,
    .backward = backward,
    .recompute = recompute,
    .reference = &tr__rms_norm_reference,
    .cpu = norm_cpu,
};

const tr_op tr__op_rms_norm_backward = {
    .name = "rms_norm_backward",
    .infer = backward_infer,
    .reference = &tr__rms_norm_backward_reference,
    .cpu = backward_cpu,
};
