#include "ops/flat/gradient_squares/gradient_squares.h"

#include "base/checked.h"
#include "ops/operand.h"

extern const tr_kernel tr__gradient_squares_kernel, tr__sum_of_squares_kernel;

// ---- by blocks

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 1, err);
    if (status == TR_OK && node->in[0].dtype != TR_I64) {
        status = tr__operand_real(node, 0, err);
    } else if (status == TR_OK) {
        status = tr__operand_dtype(node, 0, TR_I64, err);
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){
            TR_F64,
            TR_SHAPE1(tr__ceil_div(tr_shape_count(node->in[0].shape), TR_NORM_BLOCK))};
        *out_count = 1;
    }
    return status;
}

const tr_op tr__op_gradient_squares = {
    .name = "gradient_squares",
    .infer = infer,
    .reference = &tr__gradient_squares_kernel,
};

// ---- all in one

static tr_status sum_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                           tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 1, err);
    if (status == TR_OK) {
        status = tr__operand_dtype(node, 0, TR_F32, err);
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){TR_F64, TR_SHAPE1(1)};
        *out_count = 1;
    }
    return status;
}

const tr_op tr__op_sum_of_squares = {
    .name = "sum_of_squares",
    .infer = sum_infer,
    .reference = &tr__sum_of_squares_kernel,
};
