#include "ops/flat/accumulate/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/accumulate/cuda_gradients.h"
#include "ops/flat/cast/cuda_cast.h"

extern const tr_cuda_kernels tr__cuda_kernels_accumulate[];
extern tr_cuda_function tr__cuda_function_fixed;
extern tr_cuda_function tr__cuda_function_fixed_counts;
extern tr_cuda_function tr__cuda_function_fixed_sums;

static void add_fixed(const tr_op_desc *desc, const tr_launch *launch) {
    tr_cuda_fixed_args args = {.x = launch->in[0],
                               .sums = launch->out[0],
                               .count = tr_shape_count(desc->in[0].shape),
                               .scale = launch->run->fixed_scale,
                               .limit = launch->run->fixed_limit,
                               .counts = desc->out_count > 1 ? launch->out[1] : NULL,
                               .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_fixed, tr__cuda_each(args.count), &args,
                    sizeof args);
    if (args.counts) {
        tr__cuda_launch(launch, &tr__cuda_function_fixed_counts,
                        tr__cuda_each(TR_ACCUMULATE_COUNTS), &args, sizeof args);
    }
}

static void add_sums(const tr_op_desc *desc, const tr_launch *launch) {
    tr_cuda_fixed_sums_args args = {.x = launch->in[0],
                                    .sums = launch->out[0],
                                    .count = tr_shape_count(desc->in[0].shape),
                                    .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_fixed_sums, tr__cuda_each(args.count),
                    &args, sizeof args);
}

static void accumulate(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    if (desc->out[0].dtype != TR_I64) {
        tr__cuda_cast_input(desc, launch);
    } else if (desc->in[0].dtype == TR_I64) {
        add_sums(desc, launch);
    } else {
        add_fixed(desc, launch);
    }
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype from = desc->in[0].dtype, to = desc->out[0].dtype;
    bool sums = to == TR_F32 || to == TR_I64 || tr__dtype_is_half(to);
    return sums && (from == TR_F32 || from == to);
}

static const tr_kernel kernel = {.name = "accumulate.cuda",
                                 .supports = supports,
                                 .cost = tr__accumulate_cost,
                                 .launch = accumulate};

const tr_cuda_kernels tr__cuda_kernels_accumulate[] = {
    {&tr__op_accumulate, &kernel},
    {NULL, NULL},
};

// ---- for those who read them

tr_cuda_gradients tr__cuda_gradients(const tr_op_desc *desc, const tr_launch *launch,
                                     int64_t at) {
    tr_dtype type = desc->in[0].dtype;
    const char *first = launch->in[0];
    return (tr_cuda_gradients){.first = first + at * (int64_t)tr_dtype_bytes(type),
                               .back = 1 / launch->run->fixed_scale,
                               .type = (int32_t)type};
}
