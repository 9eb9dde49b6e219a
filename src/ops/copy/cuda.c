#include "ops/copy/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/copy/copy.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_copy[];

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_copy(launch->in[0], launch->out[0], tr_shape_count(desc->in[0].shape),
                 launch->accumulate & 1, launch->queue);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

static const tr_kernel copy = {
    .name = "copy.cuda", .supports = tr__desc_f32, .cost = cost, .launch = launch};

const tr_cuda_kernels tr__cuda_kernels_copy[] = {
    {&tr__op_copy, &copy},
    {NULL, NULL},
};
