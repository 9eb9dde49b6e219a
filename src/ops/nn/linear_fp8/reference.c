// Factors are rounded to codes of 8 bits, one number after the other, and back; the
// product of what comes of it is the reference of `linear`.
#include "ops/nn/linear_fp8/factors.h"

extern const tr_kernel tr__linear_fp8_reference,
    tr__linear_fp8_backward_input_reference, tr__linear_fp8_backward_weight_reference;

// Of x: [there]
static uint32_t largest_bits(const float *x, int64_t there) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < there; i++) {
        uint32_t size = tr__f32_bits(x[i]) & 0x7FFFFFFF;
        largest = size > largest ? size : largest;
    }
    return largest;
}

// x, to: [count]
static void round_factor(tr_fp8 format, const float *x, int64_t count, int64_t there,
                         float *to) {
    tr_fp8_scale scale = tr__fp8_scale_of(format, largest_bits(x, there));
    for (int64_t i = 0; i < count; i++) {
        uint8_t code = tr__fp8_of_f32(format, x[i] * scale.by);
        to[i] = tr__fp8_to_f32(format, code) * scale.back;
    }
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return tr__fp8_copy_at(desc, TR_FP8_FACTORS);
}

static void launch_rounded(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    tr_op_desc plain = tr__fp8_plain_desc(desc);
    tr_launch same = *launch;
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        float *copy = (void *)((char *)launch->workspace + tr__fp8_copy_at(desc, i));
        round_factor(tr__fp8_factor_format(desc, i), launch->in[i],
                     tr__fp8_factor_count(desc, i),
                     tr__fp8_factor_there(desc, i, launch), copy);
        same.in[i] = copy;
    }
    plain.op->reference->launch(&plain, state, &same);
}

const tr_kernel tr__linear_fp8_reference = {
    .name = "linear_fp8.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_output_cost,
    .workspace = workspace,
    .launch = launch_rounded,
};

const tr_kernel tr__linear_fp8_backward_input_reference = {
    .name = "linear_fp8_backward_input.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_input_cost,
    .workspace = workspace,
    .launch = launch_rounded,
};

const tr_kernel tr__linear_fp8_backward_weight_reference = {
    .name = "linear_fp8_backward_weight.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_weight_cost,
    .workspace = workspace,
    .launch = launch_rounded,
};
