#include "ops/cases.h"
#include "ops/nn/transpose/transpose.h"

#include <string.h>

extern const tr_case_list tr__cases_transpose;

static const struct {
    tr_shape x;
    tr_transpose_attr attr;
} cases[] = {
    {{4, {1, 1, 1, 1}}, {1}},    {{4, {2, 2, 3, 1}}, {2}},
    {{4, {2, 6, 5, 1}}, {2}},    {{4, {2, 3, 2, 5}}, {3}},
    {{4, {2, 6, 3, 2}}, {2}},    {{4, {3, 17, 35, 1}}, {17}},
    {{4, {2, 33, 4, 16}}, {33}}, {{4, {2, 315, 5, 4}}, {63}},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = (tr_case){
        .name = "transpose",
        .op = &tr__op_transpose,
        .in_count = 1,
        .in = {{.desc = {TR_F32, cases[index].x}}},
        .tolerance = 1e-7,
        .half_tolerance = 1,
        .gradient_tolerance = index < 5 ? 1e-3 : 0,
    };
    memcpy(out->attr, &cases[index].attr, sizeof cases[index].attr);
    return true;
}

const tr_case_list tr__cases_transpose = {"transpose", get};
