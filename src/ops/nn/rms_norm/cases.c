#include "ops/cases.h"
#include "ops/nn/rms_norm/rms_norm.h"

#include <string.h>

extern const tr_case_list tr__cases_rms_norm;

static const struct {
    tr_shape shape;
    double gradient_tolerance;
    int32_t depth, queries, keys;
} cases[] = {
    {{2, {1, 1}}, 2e-3, 0, 0, 0},      {{2, {3, 5}}, 2e-3, 0, 0, 0},
    {{3, {2, 3, 17}}, 2e-3, 0, 0, 0},  {{2, {17, 63}}, 0, 0, 0, 0},
    {{3, {2, 64, 257}}, 0, 0, 0, 0},   {{2, {300, 128}}, 0, 0, 0, 0},
    {{3, {2, 3, 15}}, 2e-3, 3, 2, 1},  {{3, {1, 4, 35}}, 2e-3, 7, 1, 3},
    {{3, {2, 130, 160}}, 0, 32, 3, 1}, {{3, {1, 65, 330}}, 0, 33, 4, 2},
    {{2, {9, 264}}, 0, 0, 0, 0},       {{2, {150, 48}}, 0, 0, 0, 0},
    {{2, {40, 520}}, 0, 0, 0, 0},      {{2, {35, 776}}, 0, 0, 0, 0},
    {{2, {9, 2056}}, 0, 0, 0, 0},      {{2, {3, 4104}}, 0, 0, 0, 0},
    {{3, {2, 5, 112}}, 0, 16, 3, 2},   {{3, {1, 70, 44}}, 0, 12, 2, 1},
    {{3, {2, 5, 24}}, 2e-3, 3, 4, 2},  {{3, {1, 4, 54}}, 2e-3, 3, 6, 6},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    tr_shape shape = cases[index].shape;
    int32_t depth = cases[index].depth;
    int64_t weights = depth > 0 ? 2 * depth : shape.dim[shape.rank - 1];
    tr_rms_norm_attr attr = {0.5f, depth, cases[index].queries, cases[index].keys};
    *out = (tr_case){
        .name = "rms_norm",
        .op = &tr__op_rms_norm,
        .in_count = 2,
        .in = {{.desc = {TR_F32, shape}, .scale = 2},
               {.desc = {TR_F32, TR_SHAPE1(weights)}}},
        .tolerance = 2e-6,
        .half_tolerance = 4,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_rms_norm = {"rms_norm", get};
