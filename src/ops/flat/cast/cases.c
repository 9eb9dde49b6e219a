#include "ops/cases.h"
#include "ops/flat/cast/cast.h"

#include <string.h>

extern const tr_case_list tr__cases_cast;

// From each type to each.
static bool get(int index, tr_case *out) {
    static const tr_dtype types[] = {TR_F32, TR_BF16, TR_F16};
    if (index < 0 || index >= 9) {
        return false;
    }
    tr_cast_attr attr = {(int32_t)types[index % 3]};
    *out = (tr_case){
        .name = "cast",
        .op = &tr__op_cast,
        .in_count = 1,
        .in = {{.desc = {types[index / 3], TR_SHAPE2(3, 257)}}},
        .tolerance = 0x1p-7, // added to, in bf16
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_cast = {"cast", get};
