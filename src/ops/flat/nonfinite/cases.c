#include "ops/cases.h"
#include "ops/flat/nonfinite/nonfinite.h"

#include <string.h>

extern const tr_case_list tr__cases_nonfinite;

// Finite numbers, and such that overflow.
static bool get(int index, tr_case *out) {
    static const int64_t sizes[] = {1, 257, 40000};
    if (index < 0 || index >= 6) {
        return false;
    }
    tr_nonfinite_attr attr = {1 + index};
    *out = (tr_case){
        .name = index % 2 ? "too large" : "finite",
        .op = &tr__op_nonfinite,
        .in_count = 1,
        .in = {{.desc = {TR_F32, TR_SHAPE1(sizes[index / 2])},
                .fill = TR_FILL_POSITIVE,
                .scale = index % 2 ? 1e38f * 8 : 1}},
        .half_tolerance = 0,
        .added = 1,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_nonfinite = {"nonfinite", get};
