#include "ops/nn/linear_fp8/cpu.h"
#include "backend/cpu/kernels.h"
#include "ops/nn/largest/largest.h"
#include "ops/operand.h"

extern const tr_kernel tr__largest_kernel;

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[0].dtype;
    return (real == TR_F32 || real == TR_BF16) && desc->target.level >= 0;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    double bytes = (double)tr_tensor_bytes(desc->in[0]);
    *(desc->packs ? &out->pack : &out->bytes) += bytes;
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return tr__fp8_search_bytes(desc->target.workers);
}

static size_t packed(const tr_op_desc *desc, const void *state) {
    (void)desc;
    (void)state;
    return sizeof(float);
}

static void launch_find(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    float *y = launch->out[0], *kept = launch->packed;
    if (!desc->packs || !launch->is_packed) {
        uint32_t largest =
            tr__fp8_search(&desc->in[0], &desc->target, launch->in[0],
                           tr__largest_there(desc, launch), launch->workspace);
        *(desc->packs ? kept : y) = tr__f32_of_bits(largest);
    }
    *y = desc->packs ? *kept : *y;
}

const tr_kernel tr__largest_kernel = {
    .name = "largest.cpu",
    .supports = supports,
    .cost = cost,
    .workspace = workspace,
    .packed = packed,
    .launch = launch_find,
};
