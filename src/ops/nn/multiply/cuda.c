#include "ops/nn/multiply/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/multiply/multiply.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_multiply[];
extern tr_cuda_function tr__cuda_function_multiply;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_multiply_args args = {.a = launch->in[0],
                                  .b = launch->in[1],
                                  .y = launch->out[0],
                                  .count = tr_shape_count(desc->in[0].shape),
                                  .real = (int32_t)desc->in[0].dtype,
                                  .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_multiply, tr__cuda_vectors(args.count),
                    &args, sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel multiply = {
    .name = "multiply.cuda", .supports = supports, .cost = cost, .launch = launch};

const tr_cuda_kernels tr__cuda_kernels_multiply[] = {
    {&tr__op_multiply, &multiply},
    {NULL, NULL},
};
