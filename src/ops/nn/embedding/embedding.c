#include "ops/nn/embedding/embedding.h"

#include "ops/nn/positions.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__embedding_reference, tr__embedding_backward_reference;

// Is input i, which may be left out, there?
static bool has(const tr_op_node *node, int i) {
    return i < node->in_count && node->in[i].dtype != TR_NONE;
}

// Do ids, wte and wpe (inputs first, first + 1, first + 2) fit together?
static tr_status check_tables(const tr_op_node *node, int first, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    const tr_tensor_desc *in = node->in + first;
    tr_status status = tr__operand_dtype(node, first, TR_I32, err);
    if (status == TR_OK) {
        status = tr__operand_real(node, first + 1, err);
    }
    if (status == TR_OK && has(node, first + 2)) {
        status = tr__operand_dtype(node, first + 2, in[1].dtype, err);
    }
    if (status != TR_OK) {
        return status;
    }
    if (in[0].shape.rank != 2 || in[1].shape.rank != 2) {
        const tr_shape wrong = in[in[0].shape.rank != 2 ? 0 : 1].shape;
        return tr_fail(err, TR_USAGE, "%s: ids and table must have rank 2, not %s",
                       node->op->name, tr__shape_text(wrong, text));
    }
    if (has(node, first + 2) &&
        (in[2].shape.rank != 2 || in[2].shape.dim[1] != in[1].shape.dim[1] ||
         in[2].shape.dim[0] < in[0].shape.dim[1])) {
        return tr_fail(err, TR_USAGE,
                       "%s: the table of positions has the shape %s, needs [%lld or "
                       "more, %lld]",
                       node->op->name, tr__shape_text(in[2].shape, text),
                       (long long)in[0].shape.dim[1], (long long)in[1].shape.dim[1]);
    }
    return TR_OK;
}

static tr_shape result_shape(const tr_tensor_desc *tables) {
    return TR_SHAPE3(tables[0].shape.dim[0], tables[0].shape.dim[1],
                     tables[1].shape.dim[1]);
}

static tr_status embedding_infer(const tr_op_node *node, tr_tensor_desc *out,
                                 int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 2, 5, err);
    if (status == TR_OK) {
        status = check_tables(node, 0, err);
    }
    if (status == TR_OK && has(node, 3)) {
        status =
            tr__operand_shape(node, 3, node->in[1].dtype, result_shape(node->in), err);
    }
    if (status == TR_OK) {
        status = tr__operand_positions(node, 4, node->in[0].shape, err);
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){node->in[1].dtype, result_shape(node->in)};
        *out_count = 1;
    }
    return status;
}

static tr_status embedding_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                          int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 3, 5, err);
    if (status == TR_OK) {
        status = check_tables(node, 1, err);
    }
    if (status == TR_OK) {
        status = tr__operand_shape(node, 0, node->in[2].dtype,
                                   result_shape(node->in + 1), err);
    }
    if (status == TR_OK) {
        status = tr__operand_positions(node, 4, node->in[1].shape, err);
    }
    if (status == TR_OK) {
        out[0] = tr__param_gradient(node->in[2]);
        out[1] = has(node, 3) ? tr__param_gradient(node->in[3])
                              : (tr_tensor_desc){.dtype = TR_NONE};
        *out_count = 2;
    }
    return status;
}

static int embedding_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_embedding_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0), TR_IN(1)},
        .out = {TR_GRAD_IN(1)},
    };
    if (has(node, 2)) {
        rules[0].in[3] = (tr_ref)TR_IN(2);
        rules[0].out[1] = (tr_ref)TR_GRAD_IN(2);
    }
    if (has(node, 4)) {
        rules[0].in[4] = (tr_ref)TR_IN(4);
    }
    memcpy(rules[0].attr, node->attr, sizeof(tr_embedding_attr));
    rules[1] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(3)}};
    return has(node, 3) ? 2 : 1;
}

// Rows of the table: each rank adds those that it has to a sum, and one of them the
// positions (Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3).
static bool split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out) {
    tr_embedding_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    for (int i = 0; i < node->in_count; i++) {
        out->in[i] = tr__uncut();
    }
    out->in[1] = tr__cut_along(0);
    out->out[0] = tr__uncut();
    out->partial = 1;
    attr.first += tr__cut_first(node->in[1].shape.dim[0], ranks, rank);
    attr.positions_elsewhere = rank > 0;
    memcpy(out->attr, &attr, sizeof attr);
    return way == 0 && !has(node, 3);
}

const tr_op tr__op_embedding = {
    .name = "embedding",
    .attr_bytes = sizeof(tr_embedding_attr),
    .split = split,
    .no_gradient = 1 << 0 | 1 << 4, // ids and positions
    .positions = 1 << 4,
    .in_place = 1 + 3,
    .infer = embedding_infer,
    .backward = embedding_backward,
    .reference = &tr__embedding_reference,
};

const tr_op tr__op_embedding_backward = {
    .name = "embedding_backward",
    .attr_bytes = sizeof(tr_embedding_attr),
    .positions = 1 << 4,
    .shape_only = 1 << 2 | 1 << 3, // the tables
    .infer = embedding_backward_infer,
    .reference = &tr__embedding_backward_reference,
};
