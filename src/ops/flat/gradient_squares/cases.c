#include "ops/cases.h"
#include "ops/flat/gradient_squares/gradient_squares.h"

extern const tr_case_list tr__cases_gradient_squares, tr__cases_sum_of_squares;

static const int64_t sizes[] = {1, 3, 1023, 1024, 1025, 70000};
static const tr_dtype types[] = {TR_F32, TR_BF16, TR_F16, TR_I64};

enum { SIZES = 6, TYPES = 4 };

// f64: lanes and their order may differ in the last bits from one after the other.
static bool get(int index, tr_case *out) {
    if (index < 0 || index >= SIZES * TYPES) {
        return false;
    }
    tr_dtype type = types[index % TYPES];
    *out = (tr_case){
        .name = tr_dtype_name(type),
        .op = &tr__op_gradient_squares,
        .in_count = 1,
        .in = {{.desc = {type, TR_SHAPE1(sizes[index / TYPES])}}},
        .tolerance = 1e-13,
    };
    return true;
}

static bool get_sum(int index, tr_case *out) {
    if (index < 0 || index >= SIZES) {
        return false;
    }
    *out = (tr_case){
        .name = "sum",
        .op = &tr__op_sum_of_squares,
        .in_count = 1,
        .in = {{.desc = {TR_F32, TR_SHAPE1(sizes[index])}}},
        .tolerance = 1e-13,
        .added = 1,
    };
    return true;
}

const tr_case_list tr__cases_gradient_squares = {"gradient_squares", get};
const tr_case_list tr__cases_sum_of_squares = {"sum_of_squares", get_sum};
