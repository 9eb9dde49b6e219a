#include "ops/cases.h"
#include "ops/nn/reshape/reshape.h"

#include <string.h>

extern const tr_case_list tr__cases_reshape;

static const struct {
    tr_shape from;
    tr_reshape_attr to;
} cases[] = {
    {{1, {3}}, {{1}}},           {{2, {3, 6}}, {{2, 3}}},
    {{3, {2, 3, 17}}, {{51}}},   {{4, {5, 3, 4, 7}}, {{84}}},
    {{2, {3, 30}}, {{2, 3, 5}}}, {{4, {2, 257, 3, 1}}, {{3, 257}}},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = (tr_case){
        .name = "reshape",
        .op = &tr__op_reshape,
        .in_count = 1,
        .in = {{.desc = {TR_F32, cases[index].from}}},
        .tolerance = 0,
        .half_tolerance = 1,
        .gradient_tolerance = 1e-3,
    };
    memcpy(out->attr, &cases[index].to, sizeof cases[index].to);
    return true;
}

const tr_case_list tr__cases_reshape = {"reshape", get};
