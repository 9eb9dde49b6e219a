#include "ops/nn/linear/cuda_linear.h"

#include "backend/cuda/driver.h"
#include "base/checked.h"
#include "ops/nn/linear/operands.h"

extern const tr_cuda_kernels tr__cuda_kernels_linear[];
extern tr_cuda_function tr__cuda_function_bias, tr__cuda_function_column_sums;

void tr__cuda_bias(const tr_launch *launch, tr_cuda_bias_args args) {
    tr__cuda_launch(launch, &tr__cuda_function_bias, tr__cuda_vectors(args.count),
                    &args, sizeof args);
}

static void sum_parts(const tr_launch *launch, tr_cuda_column_sums_args args) {
    tr__cuda_launch(
        launch, &tr__cuda_function_column_sums,
        tr__cuda_vector_columns(args.width, tr__ceil_div(args.rows, args.part)), &args,
        sizeof args);
}

size_t tr__cuda_column_sums_bytes(int64_t rows, int64_t width) {
    int64_t parts = tr__ceil_div(rows, tr__cuda_part_rows(rows));
    return parts > 1 ? (size_t)(parts * width) * sizeof(float) : 0;
}

void tr__cuda_column_sums(const tr_launch *launch, tr_cuda_column_sums_args args,
                          float *parts) {
    if (parts && tr__cuda_column_sums_bytes(args.rows, args.width) > 0) {
        tr_cuda_column_sums_args each = args;
        each.part = tr__cuda_part_rows(args.rows);
        each.sums = parts;
        each.add = false;
        sum_parts(launch, each);
        args.x = parts;
        args.rows = tr__ceil_div(args.rows, each.part);
        args.pitch = args.width;
        args.real = TR_F32;
    }
    args.part = args.rows;
    sum_parts(launch, args);
}

static int64_t weight_row(const tr_linear_dims *d) {
    return d->layout == TR_WEIGHT_IN_OUT ? d->out : d->in;
}

void tr__cuda_multiply_biased(const tr_launch *launch, const tr_cuda_product *product,
                              bool relu) {
    tr_cuda_product bare = *product;
    if (!relu && tr__cuda_multiply(launch, product)) {
        return;
    }
    bare.bias = NULL;
    tr__cuda_multiply(launch, &bare);
    if (product->bias || relu) {
        tr__cuda_bias(launch, (tr_cuda_bias_args){.y = product->c,
                                                  .bias = product->bias,
                                                  .count = product->m * product->n,
                                                  .width = product->n,
                                                  .pitch = product->c_row,
                                                  .real = (int32_t)product->c_real,
                                                  .y_real = (int32_t)product->c_real,
                                                  .relu = relu});
    }
}

void tr__cuda_linear(const tr_launch *launch, const tr_linear_dims *d,
                     tr_cuda_factors f) {
    tr__cuda_multiply_biased(
        launch,
        &(tr_cuda_product){.m = d->rows,
                           .n = d->out,
                           .k = d->in,
                           .a = f.a,
                           .b = f.b,
                           .c = f.c,
                           .real = f.real,
                           .c_real = f.c_real,
                           .a_row = f.a_row ? f.a_row : d->in,
                           .b_row = weight_row(d),
                           .c_row = f.c_row ? f.c_row : d->out,
                           .b_transposed = d->layout == TR_WEIGHT_OUT_IN,
                           .beta = f.add,
                           .bias = f.bias},
        f.relu);
}

void tr__cuda_linear_input(const tr_launch *launch, const tr_linear_dims *d,
                           tr_cuda_factors f) {
    tr__cuda_multiply(launch,
                      &(tr_cuda_product){.m = d->rows,
                                         .n = d->in,
                                         .k = d->out,
                                         .a = f.a,
                                         .b = f.b,
                                         .c = f.c,
                                         .real = f.real,
                                         .c_real = f.c_real,
                                         .a_row = f.a_row ? f.a_row : d->out,
                                         .b_row = weight_row(d),
                                         .c_row = d->in,
                                         .b_transposed = d->layout == TR_WEIGHT_IN_OUT,
                                         .beta = f.add});
}

bool tr__cuda_linear_weight(const tr_launch *launch, const tr_linear_dims *d,
                            tr_cuda_factors f) {
    bool in_out = d->layout == TR_WEIGHT_IN_OUT;
    int64_t dy_row = f.a_row ? f.a_row : d->out;
    tr_cuda_product product = {.m = in_out ? d->in : d->out,
                               .n = in_out ? d->out : d->in,
                               .k = d->rows,
                               .a = in_out ? f.b : f.a,
                               .b = in_out ? f.a : f.b,
                               .c = f.c,
                               .real = f.real,
                               .c_real = f.c_real,
                               .a_row = in_out ? d->in : dy_row,
                               .b_row = in_out ? dy_row : d->in,
                               .c_row = weight_row(d),
                               .a_transposed = true,
                               .beta = f.add,
                               .sums = f.sums,
                               .sums_b = in_out};
    if (tr__cuda_multiply(launch, &product)) {
        return true;
    }
    product.sums = NULL;
    tr__cuda_multiply(launch, &product);
    return false;
}

// Inputs a and b, and result 0.
static tr_cuda_factors factors_of(const tr_op_desc *desc, const tr_launch *launch) {
    return (tr_cuda_factors){.a = launch->in[0],
                             .b = launch->in[1],
                             .c = launch->out[0],
                             .real = desc->in[0].dtype,
                             .c_real = desc->out[0].dtype,
                             .add = launch->accumulate & 1};
}

static void launch_output(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    tr_linear_dims d = tr__linear_output_dims(desc);
    tr_cuda_factors f = factors_of(desc, launch);
    f.bias = launch->in[2];
    f.relu = tr__linear_attr(desc).activation == TR_ACTIVATION_RELU;
    tr__cuda_linear(launch, &d, f);
}

static void launch_input(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_linear_dims d = tr__linear_input_dims(desc);
    tr__cuda_linear_input(launch, &d, factors_of(desc, launch));
}

// dbias from dy, or, where the product has summed that, from its sums.
static void give_bias(const tr_op_desc *desc, const tr_launch *launch,
                      const tr_linear_dims *d, bool summed) {
    tr__cuda_column_sums(
        launch,
        (tr_cuda_column_sums_args){.x = summed ? launch->workspace : launch->in[0],
                                   .rows = summed ? 1 : d->rows,
                                   .width = d->out,
                                   .pitch = d->out,
                                   .real = summed ? TR_F32 : (int32_t)desc->in[0].dtype,
                                   .sums = launch->out[1],
                                   .add = launch->accumulate >> 1 & 1},
        summed ? NULL : launch->workspace);
}

// In 16 bits the product of dweight sums dy as well, which is then read once. It writes
// these sums; where dbias is added to, they come by way of the workspace.
static void launch_weight(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    tr_linear_dims d = tr__linear_weight_dims(desc);
    tr_cuda_factors f = factors_of(desc, launch);
    bool adds = launch->accumulate >> 1 & 1, summed = false;
    bool sums = launch->out[0] && launch->out[1] && f.real != TR_F32;
    f.sums = !sums ? NULL : adds ? launch->workspace : launch->out[1];
    if (launch->out[0]) {
        summed = tr__cuda_linear_weight(launch, &d, f) && sums;
    }
    if (launch->out[1] && !(summed && !adds)) {
        give_bias(desc, launch, &d, summed);
    }
}

static size_t bias_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_linear_dims d = tr__linear_weight_dims(desc);
    bool wanted = desc->out_count > 1 && desc->out[1].dtype != TR_NONE;
    size_t parts = tr__cuda_column_sums_bytes(d.rows, d.out);
    size_t sums = desc->in[0].dtype != TR_F32 && desc->out[0].dtype != TR_NONE
                      ? (size_t)d.out * sizeof(float)
                      : 0;
    return !wanted ? 0 : parts > sums ? parts : sums;
}

// What is added to goes through no activation.
static bool supports_output(const tr_op_desc *desc) {
    bool relu = tr__linear_attr(desc).activation == TR_ACTIVATION_RELU;
    return tr__desc_same_real(desc, 0, 0) && !(relu && desc->accumulate & 1);
}

static bool supports_input(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

// Gradients of parameters are f32.
static bool supports_weight(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 1 << 0 | 1 << 1);
}

static const tr_kernel output = {.name = "linear.cuda",
                                 .supports = supports_output,
                                 .cost = tr__linear_output_cost,
                                 .launch = launch_output};
static const tr_kernel input = {.name = "linear_backward_input.cuda",
                                .supports = supports_input,
                                .cost = tr__linear_input_cost,
                                .launch = launch_input};
static const tr_kernel weight = {.name = "linear_backward_weight.cuda",
                                 .supports = supports_weight,
                                 .cost = tr__linear_weight_cost,
                                 .workspace = bias_workspace,
                                 .launch = launch_weight};
static const tr_kernel bias = {.name = "linear_backward_bias.cuda",
                               .supports = supports_weight,
                               .cost = tr__linear_bias_cost,
                               .workspace = bias_workspace,
                               .launch = launch_weight};

const tr_cuda_kernels tr__cuda_kernels_linear[] = {
    {&tr__op_linear, &output},
    {&tr__op_linear_backward_input, &input},
    {&tr__op_linear_backward_weight, &weight},
    {&tr__op_linear_backward_bias, &bias},
    {NULL, NULL},
};
