#include "ops/nn/swiglu/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/swiglu/swiglu.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_swiglu[];
extern tr_cuda_function tr__cuda_function_swiglu;
extern tr_cuda_function tr__cuda_function_swiglu_backward;

// h: its shape
static tr_cuda_swiglu_args args_of(tr_tensor_desc h, const tr_launch *launch) {
    return (tr_cuda_swiglu_args){.rows = tr__shape_rows(h.shape),
                                 .width = tr__shape_width(h.shape) / 2,
                                 .real = (int32_t)h.dtype,
                                 .add = launch->accumulate & 1};
}

static void launch_swiglu(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    tr_cuda_swiglu_args args = args_of(desc->in[0], launch);
    args.h = launch->in[0];
    args.y = launch->out[0];
    tr__cuda_launch(launch, &tr__cuda_function_swiglu,
                    tr__cuda_vectors(args.rows * args.width), &args, sizeof args);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_swiglu_args args = args_of(desc->in[1], launch);
    args.dy = launch->in[0];
    args.h = launch->in[1];
    args.dh = launch->out[0];
    tr__cuda_launch(launch, &tr__cuda_function_swiglu_backward,
                    tr__cuda_vectors(args.rows * args.width), &args, sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 25, out);
}

static const tr_kernel swiglu = {
    .name = "swiglu.cuda", .supports = supports, .cost = cost, .launch = launch_swiglu};
static const tr_kernel backward = {.name = "swiglu_backward.cuda",
                                   .supports = supports,
                                   .cost = cost,
                                   .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_swiglu[] = {
    {&tr__op_swiglu, &swiglu},
    {&tr__op_swiglu_backward, &backward},
    {NULL, NULL},
};
