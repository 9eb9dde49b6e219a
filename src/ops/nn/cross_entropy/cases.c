#include "ops/cases.h"
#include "ops/nn/cross_entropy/cross_entropy.h"

#include <string.h>

extern const tr_case_list tr__cases_cross_entropy;

static const struct {
    tr_shape shape; // of the logits
    float smoothing;
    bool weighted;
    float scale; // of x
    double gradient_tolerance;
} cases[] = {
    {{2, {2, 2}}, 0, false, 1, 1e-3},   {{3, {2, 3, 5}}, 0, false, 2, 1e-3},
    {{3, {2, 3, 5}}, 0, true, 2, 1e-3}, {{3, {2, 3, 5}}, 0.1f, false, 2, 1e-3},
    {{2, {6, 7}}, 0.2f, true, 2, 1e-3}, {{3, {4, 2, 7}}, 0, false, 40, 0},
    {{2, {65, 1003}}, 0, false, 3, 0},  {{3, {8, 9, 33}}, 0.1f, true, 3, 0},
};

enum { CASES = sizeof cases / sizeof cases[0] };

static bool get(int index, tr_case *out) {
    bool each = index >= CASES;
    index -= each ? CASES : 0;
    if (index < 0 || index >= CASES) {
        return false;
    }
    tr_cross_entropy_attr attr = {cases[index].smoothing};
    tr_shape shape = cases[index].shape, rows = shape;
    int64_t classes = shape.dim[--rows.rank];
    rows.dim[rows.rank] = 0;
    *out = (tr_case){
        .name = cases[index].weighted ? "weighted" : "plain",
        .op = each ? &tr__op_cross_entropy_each : &tr__op_cross_entropy,
        .in_count = cases[index].weighted ? 3 : 2,
        .in = {{.desc = {TR_F32, shape}, .scale = cases[index].scale},
               {.desc = {TR_I32, rows}, .fill = TR_FILL_TARGET, .bound = classes},
               {.desc = {TR_F32, {1, {classes}}}, .fill = TR_FILL_POSITIVE}},
        .tolerance = 6e-7,
        .half_tolerance = 1,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_cross_entropy = {"cross_entropy", get};
