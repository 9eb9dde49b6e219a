#include "ops/cases.h"
#include "ops/flat/seed/seed.h"

#include <string.h>

extern const tr_case_list tr__cases_seed;

// From each type to each, all rows there and some not.
static bool get(int index, tr_case *out) {
    static const tr_dtype types[] = {TR_F32, TR_BF16, TR_F16};
    const int64_t count = INT64_C(3) * 257;
    if (index < 0 || index >= 18) {
        return false;
    }
    tr_seed_attr attr = {index < 9 ? count : count + 131, (int64_t)types[index % 3]};
    *out = (tr_case){
        .name = "seed",
        .op = &tr__op_seed,
        .in_count = 1,
        .in = {{.desc = {types[index % 9 / 3], TR_SHAPE2(3, 257)}}},
        .tolerance = 0x1p-7, // added to, in bf16
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_seed = {"seed", get};
