#include "backend/cuda/kernels.h"
#include "ops/flat/zero/zero.h"

extern const tr_cuda_kernels tr__cuda_kernels_zero[];

// Zero bytes are zero in every type.
static bool supports(const tr_op_desc *desc) {
    return desc->out[0].dtype != TR_NONE;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    *out = (tr_cost){.bytes = (double)tr_tensor_bytes(desc->out[0])};
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr__cuda_clear(launch, launch->out[0], tr_tensor_bytes(desc->out[0]));
}

static const tr_kernel zero = {
    .name = "zero.cuda", .supports = supports, .cost = cost, .launch = launch};

const tr_cuda_kernels tr__cuda_kernels_zero[] = {
    {&tr__op_zero, &zero},
    {NULL, NULL},
};
