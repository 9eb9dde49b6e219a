#include "ops/nn/largest/largest.h"

#include "ops/operand.h"

// ---- references

static void find(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    float *y = launch->out[0];
    *y = tr__f32_of_bits(
        tr__largest_bits(launch->in[0], tr__largest_there(desc, launch)));
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

static const tr_kernel reference = {
    .name = "largest.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = find,
};

static void put(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    float *y = (float *)launch->out[0] + tr__gather_largest_first(desc);
    for (int i = 0; i < desc->in_count; i++) {
        y[i] = *(const float *)launch->in[i];
    }
}

static const tr_kernel gather_reference = {
    .name = "gather_largest.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = put,
};

// ---- ops

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    out[0] = (tr_tensor_desc){TR_F32, TR_SHAPE1(1)};
    *out_count = 1;
    return status;
}

static tr_status gather_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    const tr_gather_largest_attr *attr = node->attr;
    tr_status status = tr__operand_count(node, 1, TR_OP_IN_MAX, err);
    for (int i = 0; i < node->in_count && status == TR_OK; i++) {
        status = tr__operand_shape(node, i, TR_F32, TR_SHAPE1(1), err);
    }
    if (status == TR_OK &&
        (attr->ranks < 1 || attr->rank < 0 || attr->rank >= attr->ranks)) {
        return tr_fail(err, TR_USAGE, "%s: there is no rank %d of %d", node->op->name,
                       attr->rank, attr->ranks);
    }
    out[0] = (tr_tensor_desc){TR_F32, TR_SHAPE2(attr->ranks, node->in_count)};
    *out_count = 1;
    return status;
}

const tr_op tr__op_largest = {
    .name = "largest",
    .attr_bytes = sizeof(tr_largest_attr),
    .no_gradient = 1,
    .packed_input = 1,
    .infer = infer,
    .reference = &reference,
};

const tr_op tr__op_gather_largest = {
    .name = "gather_largest",
    .attr_bytes = sizeof(tr_gather_largest_attr),
    .flags = TR_OP_EXCHANGE | TR_OP_GATHERS,
    .no_gradient = ~0u,
    .infer = gather_infer,
    .reference = &gather_reference,
};
