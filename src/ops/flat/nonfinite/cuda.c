#include "ops/flat/nonfinite/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/flat/nonfinite/nonfinite.h"

extern const tr_cuda_kernels tr__cuda_kernels_nonfinite[];
extern tr_cuda_function tr__cuda_function_nonfinite;

static void launch_nonfinite(const tr_op_desc *desc, void *state,
                             const tr_launch *launch) {
    (void)state;
    tr_cuda_nonfinite_args args = {.x = launch->in[0],
                                   .count = tr_shape_count(desc->in[0].shape),
                                   .place = tr__nonfinite_place(desc, launch),
                                   .first = launch->out[0],
                                   .real = (int32_t)desc->in[0].dtype};
    tr__cuda_launch(launch, &tr__cuda_function_nonfinite, tr__cuda_each(args.count),
                    &args, sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype dtype = desc->in[0].dtype;
    return tr__dtype_is_real(dtype);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    *out = (tr_cost){.bytes = (double)tr_tensor_bytes(desc->in[0])};
}

static const tr_kernel nonfinite = {.name = "nonfinite.cuda",
                                    .supports = supports,
                                    .cost = cost,
                                    .launch = launch_nonfinite};

const tr_cuda_kernels tr__cuda_kernels_nonfinite[] = {
    {&tr__op_nonfinite, &nonfinite},
    {NULL, NULL},
};
