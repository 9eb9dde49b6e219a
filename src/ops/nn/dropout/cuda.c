#include "ops/nn/dropout/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/dropout/dropout.h"
#include "ops/nn/residual/residual.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_dropout[];
extern tr_cuda_function tr__cuda_function_dropout_add;

// Of both ops the attributes are tr_dropout_attr.
static tr_cuda_dropout draws_of(const tr_op_desc *desc, const tr_launch *launch) {
    const tr_dropout_attr *attr = (const void *)desc->attr;
    tr_dropout_place x = tr__dropout_place(attr, desc->in[0].shape);
    return (tr_cuda_dropout){.run = *launch->run,
                             .draw_id = attr->draw_id,
                             .probability = attr->probability,
                             .per_sample = x.per_sample,
                             .first = x.first};
}

// out[0] = r + dropout(x)
static void add_dropout(const tr_op_desc *desc, const tr_launch *launch, const void *r,
                        const void *x) {
    tr_cuda_dropout_args args = {.r = r,
                                 .x = x,
                                 .y = launch->out[0],
                                 .count = tr_shape_count(desc->in[0].shape),
                                 .real = (int32_t)desc->in[0].dtype,
                                 .dropout = draws_of(desc, launch),
                                 .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_dropout_add,
                    tr__cuda_vectors(args.count), &args, sizeof args);
}

static void launch_dropout(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    add_dropout(desc, launch, NULL, launch->in[0]);
}

static void launch_residual(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    add_dropout(desc, launch, launch->in[0], launch->in[1]);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

static const tr_kernel dropout = {.name = "dropout.cuda",
                                  .supports = supports,
                                  .cost = cost,
                                  .launch = launch_dropout};
static const tr_kernel residual = {.name = "residual.cuda",
                                   .supports = supports,
                                   .cost = cost,
                                   .launch = launch_residual};

const tr_cuda_kernels tr__cuda_kernels_dropout[] = {
    {&tr__op_dropout, &dropout},
    {&tr__op_residual, &residual},
    {NULL, NULL},
};
