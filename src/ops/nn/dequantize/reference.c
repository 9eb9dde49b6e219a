#include "base/quantized.h"
#include "ops/nn/dequantize/dequantize.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__dequantize_reference;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    const unsigned char *tensor = launch->in[0];
    float *out = launch->out[0];
    tr_dequantize_attr attr;
    (void)state;
    memcpy(&attr, desc->attr, sizeof attr);
    for (int p = 0; p < attr.parts; p++) {
        int64_t count = (int64_t)attr.rows[p] * attr.width;
        tr_quantized_layout layout = tr__quantized_layout(attr.kind, count);
        for (int64_t i = 0; i < count; i++) {
            float value = tr__quantized_value(attr.kind, &layout, tensor, i);
            out[i] = launch->accumulate & 1 ? out[i] + value : value;
        }
        tensor += layout.bytes;
        out += count;
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel tr__dequantize_reference = {
    .name = "dequantize.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch,
};
