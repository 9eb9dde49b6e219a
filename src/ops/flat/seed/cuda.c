#include "ops/flat/seed/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/flat/seed/seed.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_seed[];
extern tr_cuda_function tr__cuda_function_seed;

// Rows that are not there have no part in what is added to.
static void clear_behind(const tr_op_desc *desc, const tr_launch *launch,
                         int64_t given) {
    int64_t each = (int64_t)tr_dtype_bytes(desc->out[0].dtype);
    int64_t left = tr_shape_count(desc->out[0].shape) - given;
    if (left > 0 && !(launch->accumulate & 1)) {
        tr__cuda_clear(launch, (char *)launch->out[0] + given * each, left * each);
    }
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    int64_t given = tr_shape_count(desc->in[0].shape);
    tr_cuda_seed_args args = {
        .g = launch->in[0],
        .dy = launch->out[0],
        .count = given,
        .from = (int32_t)desc->in[0].dtype,
        .to = (int32_t)desc->out[0].dtype,
        .add = launch->accumulate & 1,
        .seed = launch->run->loss_seed,
    };
    (void)state;
    if (given > 0) {
        tr__cuda_launch(launch, &tr__cuda_function_seed, tr__cuda_vectors(given), &args,
                        sizeof args);
    }
    clear_behind(desc, launch, given);
}

static bool supports(const tr_op_desc *desc) {
    return tr__dtype_is_real(desc->in[0].dtype) &&
           tr__dtype_is_real(desc->out[0].dtype);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel seed = {
    .name = "seed.cuda", .supports = supports, .cost = cost, .launch = launch};

const tr_cuda_kernels tr__cuda_kernels_seed[] = {
    {&tr__op_seed, &seed},
    {NULL, NULL},
};
