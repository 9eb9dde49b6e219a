#include "ops/cases.h"
#include "base/quantized.h"
#include "ops/nn/row_squares/row_squares.h"

#include <string.h>

extern const tr_case_list tr__cases_row_squares;

// Words of few bits below these bounds are finite numbers (ops/nn/dequantize/cases.c).
enum { BELOW_ONE = 0x3F800000, FINITE_HALF = 0x7C00 };

static const struct {
    int64_t all, in, rank;
    tr_row_squares_attr attr;
} cases[] = {
    {1, 1, 1, {TR_QUANTIZED_NOT, 0, 0, 1, 0, 1}},
    {7, 5, 2, {TR_QUANTIZED_NOT, 0, 2, 3, 0, 0.5f}},
    {7, 5, 2, {TR_QUANTIZED_NOT, 1, 2, 3, 0, 0.5f}},
    {24, 9, 2, {TR_QUANTIZED_NOT, 0, 6, 12, 0, 0.5f}},
    {24, 9, 2, {TR_QUANTIZED_NOT, 1, 6, 12, 0, 0.5f}},
    {40, 33, 3, {TR_QUANTIZED_NOT, 0, 0, 40, 0, 2}},
    {40, 33, 3, {TR_QUANTIZED_NOT, 1, 1, 37, 0, 2}},
    {300, 257, 16, {TR_QUANTIZED_NOT, 0, 30, 257, 0, 0.25f}},
    {300, 257, 16, {TR_QUANTIZED_NOT, 1, 30, 257, 0, 0.25f}},
    {7, 9, 2, {TR_QUANTIZED_NF4, 0, 0, 7, 0, 1}},
    {33, 48, 3, {TR_QUANTIZED_NF4, 0, 0, 33, 64, 1}},
    {130, 256, 4, {TR_QUANTIZED_NF4_DOUBLE, 0, 0, 130, 0, 0.5f}},
    {17, 96, 4, {TR_QUANTIZED_Q8_0, 0, 0, 17, 128, 0.5f}},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    const tr_row_squares_attr *attr = &cases[index].attr;
    int64_t all = cases[index].all, in = cases[index].in, rank = cases[index].rank;
    *out = (tr_case){
        .name = "row squares",
        .op = &tr__op_row_squares,
        .in_count = 3,
        .in = {{.desc = {TR_F32,
                         attr->in_out ? TR_SHAPE2(in, all) : TR_SHAPE2(all, in)}},
               {.desc = {TR_F32, TR_SHAPE2(rank, in)}},
               {.desc = {TR_F32, TR_SHAPE2(attr->rows, rank)}}},
        .tolerance = 1e-6,
        .half_tolerance = attr->kind == TR_QUANTIZED_NOT ? 1 : 0,
    };
    if (attr->kind != TR_QUANTIZED_NOT) {
        int64_t bytes = tr__quantized_layout(attr->kind, attr->rows * in).bytes;
        out->in[0] = (tr_case_input){
            .desc = {TR_I32, TR_SHAPE1((attr->tensor + bytes) / 4)},
            .fill = TR_FILL_INDEX,
            .bound = attr->kind == TR_QUANTIZED_Q8_0 ? FINITE_HALF : BELOW_ONE};
    }
    memcpy(out->attr, attr, sizeof *attr);
    return true;
}

const tr_case_list tr__cases_row_squares = {"row_squares", get};
