#include "ops/nn/softmax_parts/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/softmax_parts/operands.h"

extern const tr_cuda_kernels tr__cuda_kernels_softmax_parts[];
extern tr_cuda_function tr__cuda_function_softmax_part;
extern tr_cuda_function tr__cuda_function_softmax_part_backward;
extern tr_cuda_function tr__cuda_function_softmax_join;
extern tr_cuda_function tr__cuda_function_softmax_join_backward;

static tr_cuda_softmax_parts_args args_of(tr_softmax_parts_sizes s,
                                          const tr_launch *launch) {
    return (tr_cuda_softmax_parts_args){.rows = s.rows,
                                        .ranks = s.ranks,
                                        .rank = s.rank,
                                        .add = launch->accumulate & 1,
                                        .add_best = launch->accumulate >> 1 & 1};
}

static void launch_part(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_cuda_softmax_parts_args args = args_of(tr__softmax_part_sizes(desc), launch);
    (void)state;
    args.running_in = launch->in[0];
    args.best_in = launch->in[1];
    args.parts = launch->out[0];
    tr__cuda_launch(launch, &tr__cuda_function_softmax_part,
                    tr__cuda_each(args.rows * args.ranks), &args, sizeof args);
}

static void launch_part_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    tr_cuda_softmax_parts_args args = args_of(tr__softmax_part_sizes(desc), launch);
    (void)state;
    args.dparts_in = launch->in[0];
    args.drunning = launch->out[0];
    tr__cuda_launch(launch, &tr__cuda_function_softmax_part_backward,
                    tr__cuda_each(args.rows), &args, sizeof args);
}

static void launch_join(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_cuda_softmax_parts_args args = args_of(tr__softmax_join_sizes(desc), launch);
    (void)state;
    args.parts_in = launch->in[JOIN_PARTS];
    args.running = launch->out[0];
    args.best = launch->out[1];
    tr__cuda_launch(launch, &tr__cuda_function_softmax_join, tr__cuda_each(args.rows),
                    &args, sizeof args);
}

static void launch_join_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    tr_cuda_softmax_parts_args args = args_of(tr__softmax_join_sizes(desc), launch);
    (void)state;
    args.parts_in = launch->in[JOIN_PARTS];
    args.running_in = launch->in[JOIN_RUNNING];
    args.drunning_in = launch->in[JOIN_DRUNNING];
    args.dparts = launch->out[0];
    tr__cuda_launch(launch, &tr__cuda_function_softmax_join_backward,
                    tr__cuda_each(args.rows * args.ranks), &args, sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F64 || desc->in[0].dtype == TR_F32;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

static const tr_kernel part = {.name = "softmax_part.cuda",
                               .supports = supports,
                               .cost = cost,
                               .launch = launch_part};
static const tr_kernel part_backward = {.name = "softmax_part_backward.cuda",
                                        .supports = supports,
                                        .cost = cost,
                                        .launch = launch_part_backward};
static const tr_kernel join = {.name = "softmax_join.cuda",
                               .supports = supports,
                               .cost = cost,
                               .launch = launch_join};
static const tr_kernel join_backward = {.name = "softmax_join_backward.cuda",
                                        .supports = supports,
                                        .cost = cost,
                                        .launch = launch_join_backward};

const tr_cuda_kernels tr__cuda_kernels_softmax_parts[] = {
    {&tr__op_softmax_part, &part},
    {&tr__op_softmax_part_backward, &part_backward},
    {&tr__op_softmax_join, &join},
    {&tr__op_softmax_join_backward, &join_backward},
    {NULL, NULL},
};
