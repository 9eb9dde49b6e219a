#include "ops/attention/attention.h"

#include "backend/cpu/isa.h"
#include "ops/attention/sizes.h"
#include "ops/operand.h"

extern const tr_kernel tr__attention_reference, tr__attention_backward_reference;
extern const tr_kernel TR_CELL_KERNELS(tr__attention_kernel);
extern const tr_kernel TR_CELL_KERNELS(tr__attention_backward_kernel);

static const tr_kernel *const attention_cpu[TR_ISA_COUNT] =
    TR_ISA_TABLE(&tr__attention_kernel);
static const tr_kernel *const attention_half[TR_OP_HALVES][TR_OP_ISAS] =
    TR_CELL_TABLE(&tr__attention_kernel);
static const tr_kernel *const attention_backward_cpu[TR_ISA_COUNT] =
    TR_ISA_TABLE(&tr__attention_backward_kernel);
static const tr_kernel *const attention_backward_half[TR_OP_HALVES][TR_OP_ISAS] =
    TR_CELL_TABLE(&tr__attention_backward_kernel);

static tr_status check_attr(const tr_op_node *node, tr_error *err) {
    tr_attention_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    if (attr.heads < 1) {
        return tr_fail(err, TR_USAGE, "%s: %d heads", node->op->name, (int)attr.heads);
    }
    if (!(attr.dropout >= 0 && attr.dropout < 1)) {
        return tr_fail(err, TR_USAGE, "%s: dropout %g is not in [0, 1)", node->op->name,
                       (double)attr.dropout);
    }
    return TR_OK;
}

// Input i is qkv: rank 3, its last dimension 3 * heads * D.
static tr_status check_qkv(const tr_op_node *node, int i, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_status status = check_attr(node, err);
    if (status == TR_OK) {
        status = tr__operand_real(node, i, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_attention_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    tr_shape shape = node->in[i].shape;
    if (shape.rank != 3 || shape.dim[2] % (3 * (int64_t)attr.heads) != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: input %d has the shape %s, not [B, S, 3 C] with C a "
                       "multiple of %d heads",
                       node->op->name, i, tr__shape_text(shape, text), (int)attr.heads);
    }
    return TR_OK;
}

static tr_shape y_shape(tr_shape qkv) {
    return TR_SHAPE3(qkv.dim[0], qkv.dim[1], qkv.dim[2] / 3);
}

static tr_shape lse_shape(tr_shape qkv, const void *attr) {
    tr_attention_sizes s = tr__attention_sizes(qkv, attr);
    return TR_SHAPE3(qkv.dim[0], s.heads, s.context);
}

static tr_status attention_infer(const tr_op_node *node, tr_tensor_desc *out,
                                 int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 1, err);
    if (status == TR_OK) {
        status = check_qkv(node, 0, err);
    }
    if (status == TR_OK) {
        tr_shape qkv = node->in[0].shape;
        out[0] = (tr_tensor_desc){node->in[0].dtype, y_shape(qkv)};
        out[1] = (tr_tensor_desc){TR_F32, lse_shape(qkv, node->attr)};
        *out_count = 2;
    }
    return status;
}

static tr_status attention_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                          int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 4, 4, err);
    if (status == TR_OK) {
        status = check_qkv(node, 1, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_shape qkv = node->in[1].shape;
    tr_shape want[4] = {y_shape(qkv), qkv, y_shape(qkv), lse_shape(qkv, node->attr)};
    for (int i = 0; i < 4 && status == TR_OK; i++) {
        tr_dtype dtype = i == 3 ? TR_F32 : node->in[1].dtype;
        status = tr__operand_shape(node, i, dtype, want[i], err);
    }
    if (status == TR_OK) {
        out[0] = node->in[1];
        *out_count = 1;
    }
    return status;
}

static int attention_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_attention_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0), TR_OUT(0), TR_OUT(1)},
        .out = {TR_GRAD_IN(0)},
    };
    memcpy(rules[0].attr, node->attr, sizeof(tr_attention_attr));
    return 1;
}

static void attention_evaluate(void *attr) {
    ((tr_attention_attr *)attr)->dropout = 0;
}

// Two products of S (S + 1) / 2 by D in the forward: for each element of y [B, S, C],
// 2 (S + 1) operations.
void tr__attention_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 2.0 * (double)(desc->in[0].shape.dim[1] + 1), cost);
}

// Five such products, for dqkv [B, S, 3 C].
void tr__attention_backward_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 5.0 / 3.0 * (double)(desc->in[1].shape.dim[1] + 1), cost);
}

const tr_op tr__op_attention = {
    .name = "attention",
    .attr_bytes = sizeof(tr_attention_attr),
    .infer = attention_infer,
    .backward = attention_backward,
    .remake = {TR_REMAKE_ATTENTION, TR_REMAKE_ATTENTION},
    .evaluate = attention_evaluate,
    .reference = &tr__attention_reference,
    .cpu = attention_cpu,
    .cpu_half = attention_half,
};

const tr_op tr__op_attention_backward = {
    .name = "attention_backward",
    .attr_bytes = sizeof(tr_attention_attr),
    .infer = attention_backward_infer,
    .reference = &tr__attention_backward_reference,
    .cpu = attention_backward_cpu,
    .cpu_half = attention_backward_half,
};
