// Block by block: the sixteen numbers that a block of NF4 has are made once, then
// looked up. Rounding is that of the reference: the same bits.
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "base/checked.h"
#include "base/quantized.h"
#include "ops/nn/dequantize/dequantize.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__dequantize_kernel);

typedef struct part {
    tr_quantization kind;
    const unsigned char *tensor;
    tr_quantized_layout layout;
    int64_t count;
    tr_real *out; // [count]
    bool add;
} part;

static void put(const part *p, tr_real *out, float value) {
    *out = tr_r_of(p->add ? tr_r_get(*out) + value : value);
}

static void nf4_block(const part *p, int64_t block) {
    float scale = tr__quantized_scale(p->kind, &p->layout, p->tensor, block);
    int64_t first = block * TR_NF4_BLOCK;
    int64_t count = tr__min_i64(TR_NF4_BLOCK, p->count - first);
    const unsigned char *codes = p->tensor + first / 2;
    tr_real *out = p->out + first, values[16];
    for (int64_t i = 0; p->add && i < count; i++) {
        put(p, &out[i], tr__nf4_values[tr__nf4_code(codes, i)] * scale);
    }
    if (p->add) {
        return;
    }
    for (int i = 0; i < 16; i++) {
        values[i] = tr_r_of(tr__nf4_values[i] * scale);
    }
    for (int64_t i = 0; i + 1 < count; i += 2) {
        out[i] = values[codes[i / 2] >> 4];
        out[i + 1] = values[codes[i / 2] & 15];
    }
    if (count % 2) {
        out[count - 1] = values[tr__nf4_code(codes, count - 1)];
    }
}

static void q8_0_block(const part *p, int64_t block) {
    float scale = tr__quantized_scale(p->kind, &p->layout, p->tensor, block);
    int64_t first = block * TR_Q8_0_BLOCK;
    int64_t count = tr__min_i64(TR_Q8_0_BLOCK, p->count - first);
    const int8_t *codes = (const void *)(p->tensor + first);
    for (int64_t i = 0; i < count; i++) {
        put(p, &p->out[first + i], (float)codes[i] * scale);
    }
}

static void run_part(const part *p, int workers) {
    int threads = tr__threads_for(p->count, 1, workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t block = 0; block < p->layout.blocks; block++) {
        if (p->kind == TR_QUANTIZED_Q8_0) {
            q8_0_block(p, block);
        } else {
            nf4_block(p, block);
        }
    }
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_dequantize_attr attr;
    part p = {.tensor = launch->in[0], .out = launch->out[0]};
    (void)state;
    memcpy(&attr, desc->attr, sizeof attr);
    p.kind = attr.kind;
    p.add = launch->accumulate & 1;
    for (int i = 0; i < attr.parts; i++) {
        p.count = (int64_t)attr.rows[i] * attr.width;
        p.layout = tr__quantized_layout(attr.kind, p.count);
        run_part(&p, desc->target.workers);
        p.tensor += p.layout.bytes;
        p.out += p.count;
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel TR_ISA_NAME(tr__dequantize_kernel) = {
    .name = "dequantize.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch,
};
