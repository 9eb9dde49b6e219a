#include "ops/cases.h"
#include "ops/flat/zero/zero.h"

#include <string.h>

extern const tr_case_list tr__cases_zero;

static bool get(int index, tr_case *out) {
    static const int64_t sizes[] = {1, 3, 17, 257};
    static const tr_dtype types[] = {TR_F32, TR_F64, TR_I64, TR_BF16};
    if (index < 0 || index >= 16) {
        return false;
    }
    tr_zero_attr attr = {sizes[index / 4], (int64_t)types[index % 4]};
    *out = (tr_case){.name = tr_dtype_name(types[index % 4]), .op = &tr__op_zero};
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_zero = {"zero", get};
