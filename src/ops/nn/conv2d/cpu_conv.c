// The three convolutions by the backend's, the same for every instruction set.
#include "backend/cpu/conv.h"
#include "ops/nn/conv2d/sizes.h"
#include "ops/operand.h"

extern const tr_kernel tr__conv2d_kernel, tr__conv2d_backward_input_kernel,
    tr__conv2d_backward_weight_kernel;

static tr_conv_desc describe(tr_conv_kind kind, const tr_conv2d_sizes *s,
                             const tr_op_desc *desc) {
    return (tr_conv_desc){
        .kind = kind,
        .type = desc->in[0].dtype,
        .batch = s->batch,
        .in_h = s->height,
        .in_w = s->width,
        .in_channels = s->in,
        .out_h = s->rows,
        .out_w = s->columns,
        .out_channels = s->out,
        .kernel_h = s->p,
        .kernel_w = s->q,
        .groups = s->groups,
        .stride = {s->stride[0], s->stride[1]},
        .padding = {s->padding[0], s->padding[1]},
        .dilation = {s->dilation[0], s->dilation[1]},
        .fresh = desc->fresh & 1,
        .accumulate = desc->accumulate & 1,
        .threads = desc->target.workers,
    };
}

static tr_status output_prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    tr_conv2d_sizes sizes = tr__conv2d_output_sizes(desc);
    tr_conv_desc conv = describe(TR_CONV_OUTPUT, &sizes, desc);
    conv.bias = tr__conv2d_has_bias(desc);
    return tr__conv_create(&conv, (tr_conv **)state, err);
}

static tr_status input_prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    tr_conv2d_sizes sizes = tr__conv2d_input_sizes(desc);
    tr_conv_desc conv = describe(TR_CONV_INPUT, &sizes, desc);
    return tr__conv_create(&conv, (tr_conv **)state, err);
}

static bool wants_bias(const tr_op_desc *desc) {
    return desc->out_count > 1 && desc->out[1].dtype != TR_NONE;
}

static tr_status weight_prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    tr_conv2d_sizes sizes = tr__conv2d_weight_sizes(desc);
    tr_conv_desc conv = describe(TR_CONV_WEIGHT, &sizes, desc);
    conv.bias = wants_bias(desc);
    return tr__conv_create(&conv, (tr_conv **)state, err);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)desc;
    return tr__conv_workspace(state);
}

static void output_launch(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    tr_conv_operands operands = {
        .image = launch->in[0],
        .other = launch->in[1],
        .bias = tr__conv2d_has_bias(desc) ? launch->in[2] : NULL,
        .result = launch->out[0],
        .accumulate = launch->accumulate & 1,
    };
    tr__launch_note(launch, tr__conv_run(state, &operands, launch->workspace));
}

static void input_launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)desc;
    tr_conv_operands operands = {
        .image = launch->in[0],
        .other = launch->in[1],
        .result = launch->out[0],
        .accumulate = launch->accumulate & 1,
    };
    tr__launch_note(launch, tr__conv_run(state, &operands, launch->workspace));
}

static void weight_launch(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    tr_conv_operands operands = {
        .image = launch->in[0],
        .other = launch->in[1],
        .result = launch->out[0],
        .bias_gradient = wants_bias(desc) ? launch->out[1] : NULL,
        .accumulate = launch->accumulate & 1,
        .accumulate_bias = launch->accumulate >> 1 & 1,
    };
    tr__launch_note(launch, tr__conv_run(state, &operands, launch->workspace));
}

static void release(void *state) {
    tr__conv_destroy(state);
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[0].dtype;
    return tr__conv_has(real) && tr__desc_real(desc, real, 0, 0);
}

// Gradients of parameters are f32.
static bool weight_supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[0].dtype;
    return tr__conv_has(real) && tr__desc_real(desc, real, 0, 1 << 0 | 1 << 1) &&
           desc->out[0].dtype != TR_NONE;
}

const tr_kernel tr__conv2d_kernel = {
    .name = "conv2d.cpu",
    .supports = supports,
    .cost = tr__conv2d_output_cost,
    .prepare = output_prepare,
    .workspace = workspace,
    .launch = output_launch,
    .release = release,
};

const tr_kernel tr__conv2d_backward_input_kernel = {
    .name = "conv2d_backward_input.cpu",
    .supports = supports,
    .cost = tr__conv2d_input_cost,
    .prepare = input_prepare,
    .workspace = workspace,
    .launch = input_launch,
    .release = release,
};

const tr_kernel tr__conv2d_backward_weight_kernel = {
    .name = "conv2d_backward_weight.cpu",
    .supports = weight_supports,
    .cost = tr__conv2d_weight_cost,
    .prepare = weight_prepare,
    .workspace = workspace,
    .launch = weight_launch,
    .release = release,
};
