#include "ops/nn/transpose/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/transpose/sizes.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_transpose[];
extern tr_cuda_function tr__cuda_function_transpose;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_transpose_sizes s = tr__transpose_sizes(desc);
    tr_cuda_transpose_args args = {.x = launch->in[0],
                                   .y = launch->out[0],
                                   .matrices = s.matrices,
                                   .rows = s.rows,
                                   .columns = s.columns,
                                   .inner = s.inner,
                                   .real = (int32_t)desc->in[0].dtype,
                                   .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_transpose,
                    tr__cuda_each(tr_shape_count(desc->in[0].shape)), &args,
                    sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

static const tr_kernel transpose = {
    .name = "transpose.cuda", .supports = supports, .cost = cost, .launch = launch};

const tr_cuda_kernels tr__cuda_kernels_transpose[] = {
    {&tr__op_transpose, &transpose},
    {NULL, NULL},
};
