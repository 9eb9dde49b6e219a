#include "base/quantized.h"

#include "base/checked.h"
#include "base/dynamic_map.h"
#include "base/half.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { WORD = 4 };

const float tr__nf4_values[16] = {
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};

const char *tr__quantization_name(tr_quantization kind) {
    static const char *const names[] = {"it is", "nf4", "nf4, double", "q8_0"};
    return names[kind];
}

int64_t tr__quantized_block(tr_quantization kind) {
    return kind == TR_QUANTIZED_Q8_0 ? TR_Q8_0_BLOCK : TR_NF4_BLOCK;
}

tr_quantization tr__quantization_of_parts(tr_quantization kind) {
    return kind == TR_QUANTIZED_NF4_DOUBLE ? TR_QUANTIZED_NF4 : kind;
}

int64_t tr__code_bytes(tr_quantization kind, int64_t count) {
    return kind == TR_QUANTIZED_Q8_0 ? count : (count + 1) / 2;
}

tr_quantized_layout tr__quantized_layout(tr_quantization kind, int64_t count) {
    tr_quantized_layout at = {.blocks = tr__ceil_div(count, tr__quantized_block(kind))};
    int64_t each = kind == TR_QUANTIZED_NF4 ? 4 : kind == TR_QUANTIZED_Q8_0 ? 2 : 1;
    at.scales = tr__round_up(tr__code_bytes(kind, count), WORD);
    at.nested = at.scales + tr__round_up(at.blocks * each, WORD);
    bool twice = kind == TR_QUANTIZED_NF4_DOUBLE;
    at.bytes =
        at.nested + (twice ? (tr__ceil_div(at.blocks, TR_NF4_NESTED) + 1) * WORD : 0);
    return at;
}

// The nearest of ascending numbers; of two equally near ones the lower.
static int nearest(const float *values, int count, float x) {
    int low = 0, high = count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        bool above = x > (values[middle] + values[middle + 1]) / 2;
        low = above ? middle + 1 : low;
        high = above ? high : middle;
    }
    return low;
}

// ---- made

tr_status tr__quantizer_begin(tr_quantizer *q, tr_quantization kind, int64_t count,
                              tr_error *err) {
    *q = (tr_quantizer){
        .kind = kind, .count = count, .at = tr__quantized_layout(kind, count)};
    q->scales = tr__calloc((size_t)q->at.blocks, sizeof *q->scales);
    q->behind = tr__calloc((size_t)(q->at.bytes - q->at.scales), 1);
    if (q->scales && q->behind) {
        return TR_OK;
    }
    tr__quantizer_end(q);
    return tr_fail(err, TR_MEMORY, "no memory for a tensor of few bits");
}

void tr__quantizer_end(tr_quantizer *q) {
    tr__free(q->scales);
    tr__free(q->behind);
    *q = (tr_quantizer){0};
}

void tr__quantizer_see(tr_quantizer *q, int64_t first, int64_t count, const float *x) {
    int64_t block = tr__quantized_block(q->kind);
    for (int64_t i = 0; i < count; i++) {
        float *most = &q->scales[(first + i) / block];
        float size = fabsf(x[i]);
        *most = size > *most || isnan(size) ? size : *most;
    }
}

// What a block is divided by.
static float inverse(float largest) {
    return 1.0F / (largest < 1e-38F ? 1e-38F : largest);
}

// The largest values less their mean, as codes of 8 bits.
static void settle_double(tr_quantizer *q) {
    const int64_t blocks = q->at.blocks;
    unsigned char *codes = q->behind;
    float *nested = (void *)(q->behind + (q->at.nested - q->at.scales));
    double sum = 0;
    for (int64_t b = 0; b < blocks; b++) {
        sum += (double)q->scales[b];
    }
    float mean = (float)(sum / (double)blocks);
    int64_t groups = tr__ceil_div(blocks, TR_NF4_NESTED);
    for (int64_t g = 0; g < groups; g++) {
        int64_t first = g * TR_NF4_NESTED;
        int64_t end = tr__min_i64(blocks, first + TR_NF4_NESTED);
        float most = 0;
        for (int64_t b = first; b < end; b++) {
            most = fmaxf(most, fabsf(q->scales[b] - mean));
        }
        for (int64_t b = first; b < end; b++) {
            codes[b] = (unsigned char)nearest(tr__dynamic_map(), TR_DYNAMIC_CODES,
                                              (q->scales[b] - mean) * inverse(most));
        }
        nested[g] = most;
    }
    nested[groups] = mean;
}

void tr__quantizer_settle(tr_quantizer *q) {
    float *plain = (void *)q->behind;
    uint16_t *halves = (void *)q->behind;
    if (q->kind == TR_QUANTIZED_NF4_DOUBLE) {
        settle_double(q);
    }
    for (int64_t b = 0; b < q->at.blocks && q->kind == TR_QUANTIZED_NF4; b++) {
        plain[b] = q->scales[b];
    }
    for (int64_t b = 0; b < q->at.blocks && q->kind == TR_QUANTIZED_Q8_0; b++) {
        q->scales[b] /= 127.0F;
        halves[b] = tr__f16_of_f32(q->scales[b]);
    }
}

// What block `block` is multiplied by. behind: what lies behind the codes.
static float settled(tr_quantization kind, const tr_quantized_layout *at,
                     const unsigned char *behind, int64_t block) {
    const float *nested = (const void *)(behind + (at->nested - at->scales));
    if (kind == TR_QUANTIZED_Q8_0) {
        return tr__f16_to_f32(((const uint16_t *)(const void *)behind)[block]);
    }
    if (kind == TR_QUANTIZED_NF4) {
        return ((const float *)(const void *)behind)[block];
    }
    return tr__nf4_double_scale(behind[block], nested, at->blocks, block);
}

void tr__quantizer_take(tr_quantizer *q, const tr_quantizer *whole,
                        const tr_stride *blocks) {
    float *plain = (void *)q->behind;
    for (int64_t b = 0; b < q->at.blocks; b++) {
        int64_t of = tr__stride_place(blocks, b);
        q->scales[b] = whole->scales[of];
        if (q->kind == TR_QUANTIZED_NF4) {
            plain[b] = settled(whole->kind, &whole->at, whole->behind, of);
        }
    }
    if (q->kind == TR_QUANTIZED_NF4_DOUBLE) { // all of the whole
        memcpy(q->behind, whole->behind, (size_t)(q->at.bytes - q->at.scales));
    }
}

static void nf4_codes(const tr_quantizer *q, int64_t first, int64_t count,
                      const float *x, unsigned char *to) {
    memset(to, 0, (size_t)tr__code_bytes(q->kind, count));
    for (int64_t i = 0; i < count; i++) {
        float scale = q->scales[(first + i) / TR_NF4_BLOCK];
        float scaled = fminf(1, fmaxf(-1, x[i] * inverse(scale)));
        int code = nearest(tr__nf4_values, 16, scaled);
        to[i / 2] |= (unsigned char)(i % 2 == 0 ? code << 4 : code);
    }
}

// Divided by the scale before that is rounded, as ggml does.
static void q8_0_codes(const tr_quantizer *q, int64_t first, int64_t count,
                       const float *x, unsigned char *to) {
    for (int64_t i = 0; i < count; i++) {
        float scale = q->scales[(first + i) / TR_Q8_0_BLOCK];
        float code = scale > 0 ? roundf(x[i] * (1.0F / scale)) : 0;
        to[i] = (unsigned char)(int8_t)fminf(127, fmaxf(-127, code));
    }
}

void tr__quantizer_codes(const tr_quantizer *q, int64_t first, int64_t count,
                         const float *x, unsigned char *to) {
    if (q->kind == TR_QUANTIZED_Q8_0) {
        q8_0_codes(q, first, count, x, to);
    } else {
        nf4_codes(q, first, count, x, to);
    }
}

// ---- what it stands for

float tr__nf4_double_scale(unsigned char code, const float *nested, int64_t blocks,
                           int64_t block) {
    float product = tr__dynamic_map()[code] * nested[block / TR_NF4_NESTED];
    return product + nested[tr__ceil_div(blocks, TR_NF4_NESTED)];
}

void tr__exchange_sides(const float *x, int64_t rows, int64_t columns, float *to) {
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < columns; k++) {
            to[k * rows + i] = x[i * columns + k];
        }
    }
}

float tr__quantized_scale(tr_quantization kind, const tr_quantized_layout *at,
                          const unsigned char *tensor, int64_t block) {
    return settled(kind, at, tensor + at->scales, block);
}

float tr__quantized_value(tr_quantization kind, const tr_quantized_layout *at,
                          const unsigned char *tensor, int64_t i) {
    float scale = tr__quantized_scale(kind, at, tensor, i / tr__quantized_block(kind));
    if (kind == TR_QUANTIZED_Q8_0) {
        return (float)(int8_t)tensor[i] * scale;
    }
    return tr__nf4_values[tr__nf4_code(tensor, i)] * scale;
}

tr_status tr__quantize_through(tr_quantization kind, float *x, int64_t count,
                               tr_error *err) {
    tr_quantizer q;
    tr_quantized_layout at = tr__quantized_layout(kind, count);
    unsigned char *tensor = tr__calloc((size_t)at.bytes, 1);
    tr_status status = tensor ? tr__quantizer_begin(&q, kind, count, err)
                              : tr_fail(err, TR_MEMORY, "no memory for a tensor");
    if (status == TR_OK) {
        tr__quantizer_see(&q, 0, count, x);
        tr__quantizer_settle(&q);
        tr__quantizer_codes(&q, 0, count, x, tensor);
        memcpy(tensor + at.scales, q.behind, (size_t)(at.bytes - at.scales));
        tr__quantizer_end(&q);
        for (int64_t i = 0; i < count; i++) {
            x[i] = tr__quantized_value(kind, &at, tensor, i);
        }
    }
    tr__free(tensor);
    return status;
}
