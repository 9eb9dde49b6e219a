#include "ops/nn/bias/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/bias/bias.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_bias[];
extern tr_cuda_function tr__cuda_function_add_bias;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_add_bias_args args = {.x = launch->in[0],
                                  .b = launch->in[1],
                                  .y = launch->out[0],
                                  .count = tr_shape_count(desc->in[0].shape),
                                  .width = tr__shape_width(desc->in[0].shape),
                                  .real = (int32_t)desc->in[0].dtype,
                                  .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_add_bias, tr__cuda_vectors(args.count),
                    &args, sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel bias = {
    .name = "bias.cuda", .supports = supports, .cost = cost, .launch = launch};

const tr_cuda_kernels tr__cuda_kernels_bias[] = {
    {&tr__op_bias, &bias},
    {NULL, NULL},
};
