#include "ops/nn/broadcast/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/broadcast/sizes.h"
#include "ops/nn/linear/cuda_linear.h"

extern const tr_cuda_kernels tr__cuda_kernels_broadcast[];
extern tr_cuda_function tr__cuda_function_expand, tr__cuda_function_sum;

static void run(const tr_op_desc *desc, const tr_launch *launch,
                const tr_cuda_function *function, bool sums) {
    tr_broadcast_sizes s = tr__broadcast_sizes(desc, sums);
    tr_cuda_broadcast_args args = {.x = launch->in[0],
                                   .y = launch->out[0],
                                   .outer = s.outer,
                                   .times = s.times,
                                   .inner = s.inner,
                                   .scale = s.scale,
                                   .real = (int32_t)desc->in[0].dtype,
                                   .add = launch->accumulate & 1};
    tr__cuda_launch(launch, function, tr__cuda_each(tr_shape_count(desc->out[0].shape)),
                    &args, sizeof args);
}

static void launch_expand(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    run(desc, launch, &tr__cuda_function_expand, false);
}

static void launch_sum(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, &tr__cuda_function_sum, true);
}

static size_t sums_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_broadcast_sizes s = tr__broadcast_sizes(desc, true);
    return tr__cuda_column_sums_bytes(s.times, s.inner);
}

static void launch_repeat_backward(const tr_op_desc *desc, void *state,
                                   const tr_launch *launch) {
    (void)state;
    tr_broadcast_sizes s = tr__broadcast_sizes(desc, true);
    tr__cuda_column_sums(launch,
                         (tr_cuda_column_sums_args){.x = launch->in[0],
                                                    .rows = s.times,
                                                    .width = s.inner,
                                                    .pitch = s.inner,
                                                    .real = (int32_t)desc->in[0].dtype,
                                                    .sums = launch->out[0],
                                                    .add = launch->accumulate & 1},
                         launch->workspace);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static bool supports_repeat_backward(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 1 << 0);
}

static const tr_kernel expand = {.name = "expand.cuda",
                                 .supports = supports,
                                 .cost = tr__broadcast_cost,
                                 .launch = launch_expand};
static const tr_kernel sum = {.name = "sum.cuda",
                              .supports = supports,
                              .cost = tr__broadcast_cost,
                              .launch = launch_sum};
static const tr_kernel repeat = {.name = "repeat.cuda",
                                 .supports = supports,
                                 .cost = tr__broadcast_cost,
                                 .launch = launch_expand};
static const tr_kernel repeat_backward = {.name = "repeat_backward.cuda",
                                          .supports = supports_repeat_backward,
                                          .cost = tr__broadcast_cost,
                                          .workspace = sums_workspace,
                                          .launch = launch_repeat_backward};

const tr_cuda_kernels tr__cuda_kernels_broadcast[] = {
    {&tr__op_expand, &expand},
    {&tr__op_sum, &sum},
    {&tr__op_repeat, &repeat},
    {&tr__op_repeat_backward, &repeat_backward},
    {NULL, NULL},
};
