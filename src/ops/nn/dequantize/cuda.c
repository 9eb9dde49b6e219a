#include "ops/nn/dequantize/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/dynamic_map.h"
#include "base/quantized.h"
#include "ops/nn/dequantize/dequantize.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_cuda_kernels tr__cuda_kernels_dequantize[];
extern tr_cuda_function tr__cuda_function_dequantize;

tr_cuda_few_bits tr__cuda_few_bits(int32_t kind, const void *tensor, int64_t count) {
    tr_quantized_layout at = tr__quantized_layout((tr_quantization)kind, count);
    tr_cuda_few_bits bits = {.tensor = tensor,
                             .scales = at.scales,
                             .nested = at.nested,
                             .blocks = at.blocks,
                             .kind = kind};
    memcpy(bits.values, tr__nf4_values, sizeof bits.values);
    memcpy(bits.map, tr__dynamic_map(), sizeof bits.map);
    return bits;
}

// A launch for each tensor of a stack.
static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_dequantize_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    const char *tensor = launch->in[0];
    tr_cuda_dequantize_args args = {.out = launch->out[0],
                                    .real = (int32_t)desc->out[0].dtype,
                                    .add = launch->accumulate & 1};
    (void)state;
    for (int p = 0; p < attr.parts; p++) {
        args.count = (int64_t)attr.rows[p] * attr.width;
        args.bits = tr__cuda_few_bits((int32_t)attr.kind, tensor, args.count);
        tr__cuda_launch(launch, &tr__cuda_function_dequantize,
                        tr__cuda_each(args.count), &args, sizeof args);
        tensor += tr__quantized_layout(attr.kind, args.count).bytes;
        args.out =
            (char *)args.out + (size_t)args.count * tr_dtype_bytes(desc->out[0].dtype);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, desc->out[0].dtype, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel dequantize = {
    .name = "dequantize.cuda", .supports = supports, .cost = cost, .launch = launch};

const tr_cuda_kernels tr__cuda_kernels_dequantize[] = {
    {&tr__op_dequantize, &dequantize},
    {NULL, NULL},
};
