#include "ops/cases.h"
#include "ops/flat/copy/copy.h"

extern const tr_case_list tr__cases_copy;

static bool get(int index, tr_case *out) {
    static const int64_t sizes[] = {1, 3, 17, 63, 257};
    if (index >= (int)(sizeof sizes / sizeof *sizes)) {
        return false;
    }
    *out = (tr_case){
        .name = "copy",
        .op = &tr__op_copy,
        .in_count = 1,
        .in = {{.desc = {TR_F32, TR_SHAPE2(3, sizes[index])}}},
        .tolerance = 0,
        .half_tolerance = 1,
        .gradient_tolerance = 1e-3,
    };
    return true;
}

const tr_case_list tr__cases_copy = {"copy", get};
