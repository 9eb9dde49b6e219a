// What the kernels of sums, and those who read sums, have in common.
#include "ops/flat/accumulate/accumulate.h"

#include "base/half.h"
#include "ops/operand.h"

// Sums that are added to are read, too.
void tr__accumulate_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 1, cost);
    cost->bytes += desc->accumulate & 1 ? (double)tr_tensor_bytes(desc->out[0]) : 0;
}

bool tr__sums_are_read(tr_dtype dtype) {
    return dtype == TR_F32 || dtype == TR_I64 || tr__dtype_is_half(dtype);
}

size_t tr__sums_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return desc->in[0].dtype == TR_F32 ? 0 : TR_CONVERT_ELEMENTS * sizeof(float);
}
