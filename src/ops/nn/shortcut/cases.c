#include "ops/cases.h"
#include "ops/nn/shortcut/shortcut.h"

#include <string.h>

extern const tr_case_list tr__cases_shortcut;

static const struct {
    tr_shape x;
    int stride, channels;
} cases[] = {
    {{4, {1, 1, 1, 1}}, 1, 1},
    {{4, {2, 3, 4, 2}}, 2, 5},
    {{4, {2, 4, 4, 3}}, 2, 3},
    {{4, {3, 5, 5, 2}}, 3, 4},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = (tr_case){
        .name = "shortcut",
        .op = &tr__op_shortcut,
        .in_count = 1,
        .in = {{.desc = {TR_F32, cases[index].x}}},
        .tolerance = 1e-7,
        .gradient_tolerance = 1e-3,
        .half_tolerance = 1,
    };
    tr_shortcut_attr attr = {.stride = cases[index].stride,
                             .channels = cases[index].channels};
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_shortcut = {"shortcut", get};
