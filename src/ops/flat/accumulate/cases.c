#include "ops/cases.h"
#include "ops/flat/accumulate/accumulate.h"

#include <string.h>

extern const tr_case_list tr__cases_accumulate;

// What is added to what.
static const struct {
    tr_dtype from, to;
} types[] = {{TR_F32, TR_BF16}, {TR_F32, TR_F16},   {TR_F32, TR_I64}, {TR_I64, TR_I64},
             {TR_F32, TR_F32},  {TR_BF16, TR_BF16}, {TR_F16, TR_F16}};
static const int64_t sizes[] = {1, 3, 257, 40000};

enum { TYPES = 7, SIZES = 4 };

// Every type and size, written and added to.
static bool get(int index, tr_case *out) {
    if (index < 0 || index >= 2 * TYPES * SIZES) {
        return false;
    }
    tr_dtype from = types[index % TYPES].from, to = types[index % TYPES].to;
    tr_accumulate_attr attr = {(int32_t)to};
    bool add = index >= TYPES * SIZES;
    *out = (tr_case){
        .name = tr_dtype_name(to),
        .op = &tr__op_accumulate,
        .in_count = 1,
        .in = {{.desc = {from, TR_SHAPE1(sizes[index / TYPES % SIZES])}}},
        .added = (add ? 1u : 0) | (to == TR_I64 && from == TR_F32 ? 2u : 0),
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_accumulate = {"accumulate", get};
