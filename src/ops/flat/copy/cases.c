#include "ops/cases.h"
#include "ops/flat/copy/copy.h"

extern const tr_case_list tr__cases_copy;

static bool get(int index, tr_case *out) {
    static const int64_t sizes[] = {1, 3, 17, 63, 257};
    if (index >= (int)(sizeof sizes / sizeof *sizes)) {
        return false;
    }
    *out = tr__case_of_moves("copy", &tr__op_copy, TR_SHAPE2(3, sizes[index]));
    return true;
}

const tr_case_list tr__cases_copy = {"copy", get};
