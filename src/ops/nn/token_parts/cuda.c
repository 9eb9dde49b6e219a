#include "ops/flat/copy/cuda_copy.h"
#include "ops/nn/token_parts/token_parts.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_token_parts[];
extern const tr_kernel tr__copy_cuda;

static void launch_move(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_token_part part = tr__token_part(desc);
    int64_t first = part.first * (int64_t)tr_dtype_bytes(desc->in[0].dtype);
    tr_cuda_copy_args args = {.x = (const char *)launch->in[0] +
                                   (part.gathers ? 0 : first),
                              .y = (char *)launch->out[0] + (part.gathers ? first : 0),
                              .count = part.count,
                              .real = (int32_t)desc->in[0].dtype,
                              .add = launch->accumulate & 1};
    tr__cuda_copy(launch, args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    int64_t count = tr__token_part(desc).count;
    out->bytes = 2.0 * (double)count * (double)tr_dtype_bytes(desc->in[0].dtype);
}

static const tr_kernel parts = {.name = "token_parts.cuda",
                                .supports = supports,
                                .cost = cost,
                                .launch = launch_move};

const tr_cuda_kernels tr__cuda_kernels_token_parts[] = {
    {&tr__op_all_gather, &parts},
    {&tr__op_reduce_scatter, &tr__copy_cuda},
    {&tr__op_own_part, &parts},
    {NULL, NULL},
};
