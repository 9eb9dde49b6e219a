#include "ops/cases.h"
#include "ops/nn/normalize/normalize.h"

extern const tr_case_list tr__cases_normalize;

static const struct {
    tr_shape shape;
    double gradient_tolerance;
} cases[] = {
    {{1, {3}}, 1e-3},
    {{2, {3, 5}}, 1e-3},
    {{3, {2, 3, 17}}, 2e-3},
    {{3, {4, 16, 384}}, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = (tr_case){
        .name = "normalize",
        .op = &tr__op_normalize,
        .in_count = 1,
        .in = {{.desc = {TR_F32, cases[index].shape}, .scale = 3}},
        .tolerance = 1e-6,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    return true;
}

const tr_case_list tr__cases_normalize = {"normalize", get};
