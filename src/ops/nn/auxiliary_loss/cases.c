#include "ops/cases.h"
#include "ops/nn/auxiliary_loss/auxiliary_loss.h"

extern const tr_case_list tr__cases_auxiliary_loss;

static const struct {
    tr_shape shape; // of the logits
    float scale;    // of x
    double gradient_tolerance;
} cases[] = {
    {{2, {2, 2}}, 1, 1e-3},  {{3, {6, 1, 2}}, 2, 1e-3}, {{3, {2, 3, 5}}, 2, 1e-3},
    {{3, {4, 2, 7}}, 40, 0}, {{2, {65, 33}}, 3, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    tr_shape shape = cases[index].shape, rows = shape;
    int64_t classes = shape.dim[--rows.rank];
    rows.dim[rows.rank] = 0;
    *out = (tr_case){
        .name = "weighted",
        .op = &tr__op_auxiliary_loss,
        .in_count = 3,
        .in = {{.desc = {TR_F32, shape}, .scale = cases[index].scale},
               {.desc = {TR_I32, rows}, .fill = TR_FILL_TARGET, .bound = classes},
               {.desc = {TR_F32, rows}, .fill = TR_FILL_POSITIVE, .scale = 9}},
        .tolerance = 3e-7,
        .half_tolerance = 1,
        .always_f32 = 1 << 2,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    return true;
}

const tr_case_list tr__cases_auxiliary_loss = {"auxiliary_loss", get};
