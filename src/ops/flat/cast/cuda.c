#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/flat/cast/cast.h"
#include "ops/flat/cast/cuda_cast.h"

extern const tr_cuda_kernels tr__cuda_kernels_cast[];
extern tr_cuda_function tr__cuda_function_cast;

void tr__cuda_cast(const tr_launch *launch, const tr_cuda_cast_args *args) {
    tr__cuda_launch(launch, &tr__cuda_function_cast, tr__cuda_vectors(args->count),
                    args, sizeof *args);
}

void tr__cuda_cast_input(const tr_op_desc *desc, const tr_launch *launch) {
    tr__cuda_cast(launch, &(tr_cuda_cast_args){
                              .x = launch->in[0],
                              .y = launch->out[0],
                              .count = tr_shape_count(desc->in[0].shape),
                              .from = (int32_t)desc->in[0].dtype,
                              .to = (int32_t)desc->out[0].dtype,
                              .add = launch->accumulate & 1,
                          });
}

static void launch_cast(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr__cuda_cast_input(desc, launch);
}

static bool supports(const tr_op_desc *desc) {
    return tr__dtype_is_real(desc->in[0].dtype) &&
           tr__dtype_is_real(desc->out[0].dtype);
}

static const tr_kernel cast = {.name = "cast.cuda",
                               .supports = supports,
                               .cost = tr__cast_cost,
                               .launch = launch_cast};

const tr_cuda_kernels tr__cuda_kernels_cast[] = {
    {&tr__op_cast, &cast},
    {NULL, NULL},
};
