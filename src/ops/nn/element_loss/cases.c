#include "ops/cases.h"
#include "ops/nn/element_loss/element_loss.h"

#include <string.h>

extern const tr_case_list tr__cases_element_loss;

static const struct {
    tr_shape shape;
    int32_t kind;
    float scale; // of x
    double gradient_tolerance;
} cases[] = {
    {{2, {1, 1}}, TR_ELEMENTS_BINARY, 2, 1e-3},
    {{3, {2, 3, 5}}, TR_ELEMENTS_BINARY, 2, 1e-3},
    {{3, {4, 2, 7}}, TR_ELEMENTS_BINARY, 50, 0},
    {{3, {64, 3, 17}}, TR_ELEMENTS_BINARY, 5, 0},
    {{3, {2, 3, 5}}, TR_ELEMENTS_SQUARE, 1, 1e-3},
    {{3, {64, 3, 17}}, TR_ELEMENTS_SQUARE, 5, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    tr_element_loss_attr attr = {cases[index].kind};
    tr_shape shape = cases[index].shape;
    *out = (tr_case){
        .name = attr.kind == TR_ELEMENTS_BINARY ? "binary" : "square",
        .op = &tr__op_element_loss,
        .in_count = 2,
        .in = {{.desc = {TR_F32, shape}, .scale = cases[index].scale},
               {.desc = {TR_F32, shape}, .fill = TR_FILL_POSITIVE, .scale = 0.6f}},
        .tolerance = 3e-7,
        .half_tolerance = 1,
        .always_f32 = 1 << 1,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_element_loss = {"element_loss", get};
