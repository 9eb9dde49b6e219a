#include "ops/nn/text_pool/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/positions.h"

#include <string.h>

extern const tr_cuda_kernels tr__cuda_kernels_text_pool[];
extern tr_cuda_function tr__cuda_function_text_pool, tr__cuda_function_text_spread;

// x: the shape of the tokens.
static void run(const tr_op_desc *desc, const tr_launch *launch,
                const tr_cuda_function *function, tr_shape x, int places) {
    tr_shape to = desc->out[0].shape;
    tr_cuda_text_pool_args args = {
        .from = launch->in[0],
        .to = launch->out[0],
        .places = tr__launch_positions(desc, launch, places),
        .length = x.dim[1],
        .width = x.dim[2],
        .real = (int32_t)desc->out[0].dtype,
        .add = launch->accumulate & 1,
    };
    memcpy(&args.attr, desc->attr, sizeof args.attr);
    tr__cuda_launch(launch, function,
                    tr__cuda_blocks(to.dim[0] * to.dim[1], TR_CUDA_THREADS), &args,
                    sizeof args);
}

static void pool(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, &tr__cuda_function_text_pool, desc->in[0].shape, 1);
}

static void pool_backward(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    run(desc, launch, &tr__cuda_function_text_spread, desc->out[0].shape, 2);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel forward = {
    .name = "text_pool.cuda", .supports = supports, .cost = cost, .launch = pool};
static const tr_kernel backward = {.name = "text_pool_backward.cuda",
                                   .supports = supports,
                                   .cost = cost,
                                   .launch = pool_backward};

const tr_cuda_kernels tr__cuda_kernels_text_pool[] = {
    {&tr__op_text_pool, &forward},
    {&tr__op_text_pool_backward, &backward},
    {NULL, NULL},
};
