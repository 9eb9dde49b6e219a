#include "ops/cases.h"
#include "base/quantized.h"
#include "ops/nn/dequantize/dequantize.h"

#include <string.h>

extern const tr_case_list tr__cases_dequantize;

// Words below these bounds are finite numbers wherever they stand for some: f32 below
// 1, and of f16 the lower halves.
enum { BELOW_ONE = 0x3F800000, FINITE_HALF = 0x7C00 };

static const tr_dequantize_attr cases[] = {
    {TR_QUANTIZED_NF4, TR_F32, 1, {1}, 1},
    {TR_QUANTIZED_NF4, TR_F32, 2, {3, 5}, 17},
    {TR_QUANTIZED_NF4, TR_F32, 3, {64, 32, 32}, 96},
    {TR_QUANTIZED_NF4_DOUBLE, TR_F32, 1, {7}, 9},
    {TR_QUANTIZED_NF4_DOUBLE, TR_F32, 2, {130, 2}, 256},
    {TR_QUANTIZED_Q8_0, TR_F32, 1, {3}, 32},
    {TR_QUANTIZED_Q8_0, TR_F32, 2, {5, 64}, 96},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    const tr_dequantize_attr *attr = &cases[index];
    int64_t bytes = 0;
    for (int i = 0; i < attr->parts; i++) {
        int64_t count = (int64_t)attr->rows[i] * attr->width;
        bytes += tr__quantized_layout(attr->kind, count).bytes;
    }
    *out = (tr_case){
        .name = "dequantize",
        .op = &tr__op_dequantize,
        .in_count = 1,
        .in = {{.desc = {TR_I32, TR_SHAPE1(bytes / 4)},
                .fill = TR_FILL_INDEX,
                .bound = attr->kind == TR_QUANTIZED_Q8_0 ? FINITE_HALF : BELOW_ONE}},
        .tolerance = 2e-7, // a GPU rounds a product and its sum once
    };
    memcpy(out->attr, attr, sizeof *attr);
    return true;
}

const tr_case_list tr__cases_dequantize = {"dequantize", get};
