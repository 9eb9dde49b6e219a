#include "files/gguf/format.h"

#include "base/half.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void decode_f32(const unsigned char *block, float *values) {
    memcpy(values, block, sizeof *values);
}

static bool encode_f32(const float *values, unsigned char *block) {
    memcpy(block, values, sizeof *values);
    return true;
}

static uint16_t read_half(const unsigned char *bytes) {
    uint16_t half;
    memcpy(&half, bytes, sizeof half);
    return half;
}

static void decode_f16(const unsigned char *block, float *values) {
    *values = tr__f16_to_f32(read_half(block));
}

static bool encode_f16(const float *values, unsigned char *block) {
    uint16_t half = tr__f16_of_f32(*values);
    memcpy(block, &half, sizeof half);
    return !isfinite(*values) || isfinite(tr__f16_to_f32(half));
}

static void decode_bf16(const unsigned char *block, float *values) {
    *values = tr__bf16_to_f32(read_half(block));
}

static bool encode_bf16(const float *values, unsigned char *block) {
    uint16_t half = tr__bf16_of_f32(*values);
    memcpy(block, &half, sizeof half);
    return true;
}

static const tr_gguf_format formats[] = {
    {TR_GGUF_F32, "F32", 1, 4, TR_F32, decode_f32, encode_f32},
    {TR_GGUF_F16, "F16", 1, 2, TR_F16, decode_f16, encode_f16},
    {TR_GGUF_BF16, "BF16", 1, 2, TR_BF16, decode_bf16, encode_bf16},
    {TR_GGUF_Q8_0, "Q8_0", 32, 34, TR_NONE, tr__gguf_decode_q8_0, tr__gguf_encode_q8_0},
    {TR_GGUF_Q4_0, "Q4_0", 32, 18, TR_NONE, tr__gguf_decode_q4_0, NULL},
    {TR_GGUF_Q4_1, "Q4_1", 32, 20, TR_NONE, tr__gguf_decode_q4_1, NULL},
    {TR_GGUF_Q5_0, "Q5_0", 32, 22, TR_NONE, tr__gguf_decode_q5_0, NULL},
    {TR_GGUF_Q5_1, "Q5_1", 32, 24, TR_NONE, tr__gguf_decode_q5_1, NULL},
    {TR_GGUF_Q2_K, "Q2_K", 256, 84, TR_NONE, tr__gguf_decode_q2_k, NULL},
    {TR_GGUF_Q3_K, "Q3_K", 256, 110, TR_NONE, tr__gguf_decode_q3_k, NULL},
    {TR_GGUF_Q4_K, "Q4_K", 256, 144, TR_NONE, tr__gguf_decode_q4_k, NULL},
    {TR_GGUF_Q5_K, "Q5_K", 256, 176, TR_NONE, tr__gguf_decode_q5_k, NULL},
    {TR_GGUF_Q6_K, "Q6_K", 256, 210, TR_NONE, tr__gguf_decode_q6_k, NULL},
};
enum { FORMATS = sizeof formats / sizeof *formats };

// Those that files may have and that are not supported, for messages.
static const struct {
    int number;
    const char *name;
} others[] = {
    {9, "Q8_1"},   {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},   {22, "IQ2_S"},  {23, "IQ4_XS"},
    {24, "I8"},    {25, "I16"},    {26, "I32"},     {27, "I64"},    {28, "F64"},
    {29, "IQ1_M"}, {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"},  {40, "NVFP4"},
};

const tr_gguf_format *tr__gguf_format(int64_t number) {
    for (int i = 0; i < FORMATS; i++) {
        if (formats[i].number == number) {
            return &formats[i];
        }
    }
    return NULL;
}

const char *tr__gguf_format_name(int64_t number) {
    const tr_gguf_format *format = tr__gguf_format(number);
    for (size_t i = 0; !format && i < sizeof others / sizeof *others; i++) {
        if (others[i].number == number) {
            return others[i].name;
        }
    }
    return format ? format->name : NULL;
}

const char *tr__gguf_format_names(char *dst, size_t size) {
    size_t used = 0;
    for (int i = 0; i < FORMATS && used < size; i++) {
        used += (size_t)snprintf(dst + used, size - used, "%s%s", i ? ", " : "",
                                 formats[i].name);
    }
    return dst;
}
