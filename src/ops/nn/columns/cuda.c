#include "ops/nn/columns/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/columns/columns.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_cuda_kernels tr__cuda_kernels_columns[];
extern tr_cuda_function tr__cuda_function_add_columns;
extern tr_cuda_function tr__cuda_function_take_columns;
extern tr_cuda_function tr__cuda_function_put_columns;

static void run(const tr_op_desc *desc, const tr_launch *launch,
                const tr_cuda_function *function, const void *u) {
    tr_columns_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    tr_cuda_columns_args args = {.x = launch->in[0],
                                 .u = u,
                                 .y = launch->out[0],
                                 .rows = tr__shape_rows(desc->in[0].shape),
                                 .width = tr__shape_width(desc->in[0].shape),
                                 .first = attr.first,
                                 .count = attr.count,
                                 .scale = attr.scale,
                                 .real = (int32_t)desc->in[0].dtype,
                                 .add = launch->accumulate & 1};
    tr__cuda_launch(launch, function, tr__cuda_each(tr_shape_count(desc->out[0].shape)),
                    &args, sizeof args);
}

static void launch_add(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, &tr__cuda_function_add_columns, launch->in[1]);
}

static void launch_take(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    run(desc, launch, &tr__cuda_function_take_columns, NULL);
}

// Columns [first, +count) of y get `u`.
static void put(const tr_op_desc *desc, const tr_launch *launch, const void *u,
                tr_columns_attr attr, bool clear) {
    tr_cuda_columns_args args = {.u = u,
                                 .y = launch->out[0],
                                 .rows = tr__shape_rows(desc->out[0].shape),
                                 .width = tr__shape_width(desc->out[0].shape),
                                 .first = attr.first,
                                 .count = attr.count,
                                 .scale = attr.scale,
                                 .real = (int32_t)desc->out[0].dtype,
                                 .add = launch->accumulate & 1,
                                 .clear = clear};
    tr__cuda_launch(launch, &tr__cuda_function_put_columns,
                    tr__cuda_each(args.rows * args.width), &args, sizeof args);
}

static void launch_put(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_columns_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    put(desc, launch, launch->in[0], attr, !(launch->accumulate & 1));
}

static void launch_join(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_columns_attr attr = {.scale = 1};
    for (int i = 0; i < desc->in_count; i++) {
        attr.count = (int32_t)tr__shape_width(desc->in[i].shape);
        put(desc, launch, launch->in[i], attr, false);
        attr.first += attr.count;
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel add = {.name = "add_columns.cuda",
                              .supports = supports,
                              .cost = cost,
                              .launch = launch_add};
static const tr_kernel take = {.name = "take_columns.cuda",
                               .supports = supports,
                               .cost = cost,
                               .launch = launch_take};

static const tr_kernel put_kernel = {.name = "put_columns.cuda",
                                     .supports = supports,
                                     .cost = cost,
                                     .launch = launch_put};
static const tr_kernel join_kernel = {.name = "join_columns.cuda",
                                      .supports = supports,
                                      .cost = cost,
                                      .launch = launch_join};

const tr_cuda_kernels tr__cuda_kernels_columns[] = {
    {&tr__op_add_columns, &add},
    {&tr__op_take_columns, &take},
    {&tr__op_put_columns, &put_kernel},
    {&tr__op_join_columns, &join_kernel},
    {NULL, NULL},
};
