#include "ops/cases.h"
#include "ops/nn/conv2d/conv2d.h"

#include <string.h>

extern const tr_case_list tr__cases_conv2d;

// Batch, height, width, channels in and out, kernel, stride, padding: narrow and odd
// sizes, those of residual networks, windows that leave a rest, 1 x 1.
static const struct {
    int64_t batch, height, width, in, out, p, q;
    tr_conv2d_attr attr;
    bool bias;
    double gradient_tolerance;
} cases[] = {
    {1, 1, 1, 1, 1, 1, 1, {{1, 1}, {0, 0}, {1, 1}, 1, 0, 0}, true, 1e-3},
    {2, 4, 5, 2, 3, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1, 0, 0}, true, 1e-3},
    {2, 5, 4, 3, 2, 3, 3, {{2, 2}, {1, 1}, {1, 1}, 1, 0, 0}, false, 1e-3},
    {3, 6, 6, 2, 4, 1, 1, {{2, 2}, {0, 0}, {1, 1}, 1, 0, 0}, false, 1e-3},
    {1, 7, 6, 1, 2, 3, 2, {{2, 2}, {0, 0}, {1, 1}, 1, 0, 0}, true, 1e-3},
    {2, 8, 8, 16, 16, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1, 0, 0}, false, 0},
    {2, 8, 8, 16, 32, 3, 3, {{2, 2}, {1, 1}, {1, 1}, 1, 0, 0}, true, 0},
    {3, 8, 8, 16, 32, 1, 1, {{2, 2}, {0, 0}, {1, 1}, 1, 0, 0}, false, 0},
    {2, 14, 14, 20, 33, 1, 1, {{2, 2}, {0, 0}, {1, 1}, 1, 0, 0}, true, 0},
    {2, 9, 12, 12, 40, 1, 1, {{3, 3}, {0, 0}, {1, 1}, 1, 0, 0}, false, 0},
    {2, 7, 9, 8, 16, 1, 1, {{2, 2}, {0, 0}, {1, 1}, 1, 0, 0}, false, 0},
    {1, 14, 14, 3, 16, 7, 7, {{2, 2}, {3, 3}, {1, 1}, 1, 0, 0}, true, 0},
    {2, 5, 7, 17, 19, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1, 0, 0}, true, 0},
    // Sides that differ, gaps, groups, and a filter for each channel.
    {2, 6, 4, 2, 3, 3, 1, {{2, 1}, {1, 0}, {1, 1}, 1, 0, 0}, true, 1e-3},
    {1, 7, 6, 2, 2, 3, 2, {{1, 2}, {2, 1}, {2, 3}, 1, 0, 0}, true, 1e-3},
    {2, 4, 5, 4, 6, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 2, 0, 0}, true, 1e-3},
    {2, 5, 4, 3, 3, 3, 3, {{2, 2}, {1, 1}, {1, 1}, 3, 0, 0}, false, 1e-3},
    {3, 6, 6, 4, 4, 1, 1, {{2, 2}, {0, 0}, {1, 1}, 2, 0, 0}, false, 1e-3},
    {2, 9, 8, 32, 32, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 32, 0, 0}, true, 0},
    {2, 9, 8, 24, 48, 5, 3, {{2, 1}, {2, 2}, {1, 2}, 3, 0, 0}, true, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    int64_t in = cases[index].in, to = cases[index].out;
    *out = (tr_case){
        .name = "conv2d",
        .op = &tr__op_conv2d,
        .in_count = 3,
        .in = {{.desc = {TR_F32, TR_SHAPE4(cases[index].batch, cases[index].height,
                                           cases[index].width, in)}},
               {.desc = {TR_F32, TR_SHAPE4(to, in / cases[index].attr.groups,
                                           cases[index].p, cases[index].q)},
                .scale = 0.3f},
               {.desc = {cases[index].bias ? TR_F32 : TR_NONE, TR_SHAPE1(to)}}},
        .tolerance = 2e-6,
        .gradient_tolerance = cases[index].gradient_tolerance,
        .half_tolerance = 1,
    };
    memcpy(out->attr, &cases[index].attr, sizeof cases[index].attr);
    return true;
}

const tr_case_list tr__cases_conv2d = {"conv2d", get};
