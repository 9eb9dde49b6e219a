#include "ops/cases.h"
#include "ops/nn/dropout/dropout.h"

#include <string.h>

extern const tr_case_list tr__cases_dropout;

static const struct {
    tr_shape shape;
    tr_dropout_attr attr;
    double gradient_tolerance;
} cases[] = {
    {{1, {1}}, {.probability = 0.5f, .draw_id = 0}, 1e-3},
    {{2, {3, 17}}, {.probability = 0.1f, .draw_id = 1}, 1e-3},
    {{2, {3, 5}}, {.probability = 0, .draw_id = 0}, 1e-3},
    {{3, {2, 17, 63}}, {.probability = 0.25f, .draw_id = 2}, 0},
    {{3, {3, 63, 257}}, {.probability = 0.1f, .draw_id = 3}, 0},
    {{2, {257, 300}}, {.probability = 0.9f, .draw_id = 4}, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = (tr_case){
        .name = cases[index].attr.probability > 0 ? "dropout" : "dropout of nothing",
        .op = &tr__op_dropout,
        .in_count = 1,
        .in = {{.desc = {TR_F32, cases[index].shape}}},
        .tolerance = 1e-6,
        .half_tolerance = 1,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &cases[index].attr, sizeof cases[index].attr);
    return true;
}

const tr_case_list tr__cases_dropout = {"dropout", get};
