#include "ops/nn/normalize/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/normalize/normalize.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_normalize[];
extern tr_cuda_function tr__cuda_function_normalize;

static void run(const tr_op_desc *desc, const tr_launch *launch, const float *dy,
                const float *x) {
    const tr_cuda_normalize_args args = {.dy = dy,
                                         .x = x,
                                         .to = launch->out[0],
                                         .width = tr__shape_width(desc->out[0].shape),
                                         .add = launch->accumulate & 1};
    tr__cuda_launch(
        launch, &tr__cuda_function_normalize,
        tr__cuda_blocks(tr__shape_rows(desc->out[0].shape), TR_CUDA_THREADS), &args,
        sizeof args);
}

static void normalize(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, NULL, launch->in[0]);
}

static void normalize_backward(const tr_op_desc *desc, void *state,
                               const tr_launch *launch) {
    (void)state;
    run(desc, launch, launch->in[0], launch->in[1]);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 4, out);
}

static const tr_kernel forward = {.name = "normalize.cuda",
                                  .supports = tr__desc_f32,
                                  .cost = cost,
                                  .launch = normalize};
static const tr_kernel backward = {.name = "normalize_backward.cuda",
                                   .supports = tr__desc_f32,
                                   .cost = cost,
                                   .launch = normalize_backward};

const tr_cuda_kernels tr__cuda_kernels_normalize[] = {
    {&tr__op_normalize, &forward},
    {&tr__op_normalize_backward, &backward},
    {NULL, NULL},
};
