// A tensor's parts are added one after the other, whichever ranks have measured them.
#include "ops/flat/update/update.h"
#include "ops/operand.h"
#include "ops/optimizers/optimizer_measure.h"

#include <string.h>

extern const tr_kernel tr__tensor_squares_kernel;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_tensor_squares_attr *attr = (const void *)desc->attr;
    const tr_squares *parts = launch->in[0];
    tr_squares *tensors = launch->out[0];
    memset(tensors, 0, (size_t)tr_tensor_bytes(desc->out[0]));
    for (int64_t i = 0; i < attr->count; i++) {
        const tr_parts_run *run = &attr->runs[i];
        tr_squares *total = &tensors[run->tensor];
        for (int64_t k = run->first; k < run->first + run->count; k++) {
            total->param += parts[k].param;
            total->direction += parts[k].direction;
        }
    }
}

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F64 && desc->out[0].dtype == TR_F64;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

const tr_kernel tr__tensor_squares_kernel = {
    .name = "tensor_squares.cpu",
    .supports = supports,
    .cost = cost,
    .launch = launch,
};

const tr_op tr__op_tensor_squares = {
    .name = "tensor_squares",
    .attr_bytes = sizeof(tr_tensor_squares_attr),
    .reference = &tr__tensor_squares_kernel,
};
