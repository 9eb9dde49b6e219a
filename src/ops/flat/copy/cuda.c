#include "ops/flat/copy/copy.h"
#include "ops/flat/copy/cuda_copy.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_copy[];
extern const tr_kernel tr__copy_cuda;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr__cuda_copy(launch,
                  (tr_cuda_copy_args){.x = launch->in[0],
                                      .y = launch->out[0],
                                      .count = tr_shape_count(desc->in[0].shape),
                                      .real = (int32_t)desc->in[0].dtype,
                                      .add = launch->accumulate & 1});
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

const tr_kernel tr__copy_cuda = {
    .name = "copy.cuda", .supports = supports, .cost = cost, .launch = launch};

const tr_cuda_kernels tr__cuda_kernels_copy[] = {
    {&tr__op_copy, &tr__copy_cuda},
    {NULL, NULL},
};
