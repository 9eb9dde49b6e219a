#include "ops/nn/magnitude/magnitude.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__magnitude_reference, tr__magnitude_gradient_reference;

// ---- shapes

// Input 0 is rows of columns that the layers are of.
static tr_status check_columns(const tr_op_node *node, tr_magnitude_attr *attr,
                               tr_error *err) {
    char text[TR_SHAPE_TEXT];
    memcpy(attr, node->attr, sizeof *attr);
    tr_status status = tr__operand_real(node, 0, err);
    int64_t width = tr__shape_width(node->in[0].shape);
    bool good = attr->layers >= 1 && attr->layers <= TR_MAGNITUDE_LAYERS;
    for (int i = 0; good && i < attr->layers; i++) {
        good = attr->first[i] >= 0 && attr->count[i] >= 1 &&
               attr->first[i] <= width - attr->count[i];
    }
    return status != TR_OK || good
               ? status
               : tr_fail(err, TR_USAGE, "%s: x of the shape %s has no such columns",
                         node->op->name, tr__shape_text(node->in[0].shape, text));
}

// Of each layer, from input `at` on: m, if `pairs`, and s.
static tr_status check_layers(const tr_op_node *node, const tr_magnitude_attr *attr,
                              int at, bool pairs, tr_error *err) {
    int each = 1 + pairs;
    tr_status status = tr__operand_count(node, at + attr->layers * each,
                                         at + attr->layers * each, err);
    for (int i = 0; i < attr->layers && status == TR_OK; i++) {
        tr_shape shape = TR_SHAPE1(attr->count[i]);
        int m = at + i * each;
        status =
            pairs ? tr__operand_shape(node, m, node->in[0].dtype, shape, err) : TR_OK;
        if (status == TR_OK) {
            status = tr__operand_shape(node, m + pairs, TR_F32, shape, err);
        }
    }
    return status;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_magnitude_attr attr;
    tr_status status = check_columns(node, &attr, err);
    status = status == TR_OK ? check_layers(node, &attr, 1, true, err) : status;
    out[0] = node->in[0];
    *out_count = 1;
    return status;
}

static tr_status gradient_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    tr_magnitude_attr attr;
    tr_status status = check_columns(node, &attr, err);
    if (status == TR_OK) {
        status = tr__operand_shape(node, 1, node->in[0].dtype, node->in[0].shape, err);
    }
    status = status == TR_OK ? check_layers(node, &attr, TR_MAGNITUDE_S, false, err)
                             : status;
    for (int i = 0; i < attr.layers && status == TR_OK; i++) {
        out[i] = (tr_tensor_desc){TR_F32, TR_SHAPE1(attr.count[i])};
    }
    *out_count = attr.layers;
    return status;
}

// ---- backward

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    tr_magnitude_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    tr_rule *of_m = &rules[0], *of_x = &rules[1];
    *of_m =
        (tr_rule){.op = &tr__op_magnitude_gradient, .in = {TR_GRAD_OUT(0), TR_IN(0)}};
    *of_x = (tr_rule){
        .op = &tr__op_magnitude, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    for (int i = 0; i < attr.layers; i++) {
        int m = 1 + 2 * i, squares = m + 1;
        of_m->in[TR_MAGNITUDE_S + i] = (tr_ref)TR_IN(squares);
        of_m->out[i] = (tr_ref)TR_GRAD_IN(m);
        of_x->in[m] = (tr_ref)TR_IN(m);
        of_x->in[squares] = (tr_ref)TR_IN(squares);
    }
    memcpy(of_m->attr, &attr, sizeof attr);
    memcpy(of_x->attr, &attr, sizeof attr);
    return 2;
}

// ---- over ranks

static void place(void *attr, int range, int64_t first, int64_t count) {
    tr_magnitude_attr *at = attr;
    at->first[range] = (int32_t)first;
    at->count[range] = (int32_t)count;
}

// Columns, of which those of each layer are one block, or all.
static bool split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out) {
    tr_magnitude_attr attr;
    (void)ranks;
    (void)rank;
    memcpy(&attr, node->attr, sizeof attr);
    out->in[0] = out->out[0] = tr__cut_last(&node->in[0]);
    for (int i = 0; i < attr.layers; i++) {
        uint32_t inputs = 1u << (1 + 2 * i) | 1u << (2 + 2 * i);
        tr__split_range(node, out, attr.first[i], attr.count[i], inputs);
    }
    out->place = place;
    return way == 0;
}

// ---- the ops

const tr_op tr__op_magnitude = {
    .name = "magnitude",
    .attr_bytes = sizeof(tr_magnitude_attr),
    .no_gradient = TR_MAGNITUDE_PLAIN, // lengths are constants
    .in_place = 1 + 0,
    .infer = infer,
    .backward = backward,
    .split = split,
    // As quick to make again as what a normalization gives: only the product is kept.
    .recompute_class = {TR_RECOMPUTE_NORM},
    .reference = &tr__magnitude_reference,
};

const tr_op tr__op_magnitude_gradient = {
    .name = "magnitude_gradient",
    .attr_bytes = sizeof(tr_magnitude_attr),
    .infer = gradient_infer,
    .reference = &tr__magnitude_gradient_reference,
};
