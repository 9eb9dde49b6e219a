#include "ops/flat/nonfinite/nonfinite.h"

#include "ops/operand.h"

#include <math.h>

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){TR_F64, TR_SHAPE1(1)};
        *out_count = 1;
    }
    return status;
}

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32 && desc->out[0].dtype == TR_F64;
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    double place = tr__nonfinite_place(desc, launch);
    const float *x = launch->in[0]; // [count]
    double *first = launch->out[0];
    int64_t count = tr_shape_count(desc->in[0].shape);
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(x[i]) && (*first == 0 || place < *first)) {
            *first = place;
        }
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    *out = (tr_cost){.bytes = (double)tr_tensor_bytes(desc->in[0])};
}

static const tr_kernel reference = {
    .name = "nonfinite.reference",
    .supports = supports,
    .cost = cost,
    .launch = launch,
};

const tr_op tr__op_nonfinite = {
    .name = "nonfinite",
    .attr_bytes = sizeof(tr_nonfinite_attr),
    .no_gradient = 1,
    .infer = infer,
    .reference = &reference,
};
