#include "ops/cases.h"
#include "ops/nn/rope/rope.h"

#include <string.h>

extern const tr_case_list tr__cases_rope;

// Rows have `other` elements after the heads that are turned.
static const struct {
    int64_t batch, context, heads, depth, other;
    tr_rope_scaling scaling;
    double gradient_tolerance;
    int64_t longest; // document of a packed sample; 0: each sample is one
    int64_t keys;
} cases[] = {
    {1, 1, 1, 2, 0, TR_ROPE_DEFAULT, 1e-3, 0, 0},
    {2, 5, 3, 6, 4, TR_ROPE_DEFAULT, 1e-3, 0, 0},
    {1, 9, 2, 34, 17, TR_ROPE_LINEAR, 1e-3, 0, 0},
    {2, 300, 3, 64, 64, TR_ROPE_DEFAULT, 0, 0, 0},
    {1, 257, 4, 32, 0, TR_ROPE_LLAMA3, 0, 0, 0},
    {1, 65, 3, 32, 16, TR_ROPE_DEFAULT, 0, 0, 0},
    {2, 129, 2, 80, 33, TR_ROPE_YARN, 0, 0, 0},
    {2, 5, 3, 6, 4, TR_ROPE_DEFAULT, 1e-3, 3, 0},
    {2, 400, 3, 64, 64, TR_ROPE_YARN, 0, 150, 0},
    {2, 5, 6, 4, 8, TR_ROPE_DEFAULT, 1e-3, 0, 2},
    {1, 7, 9, 4, 12, TR_ROPE_DEFAULT, 1e-3, 0, 3},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    int64_t width = cases[index].heads * cases[index].depth + cases[index].other;
    tr_rope_attr attr = {.depth = (int32_t)cases[index].depth,
                         .heads = (int32_t)cases[index].heads,
                         .keys = (int32_t)cases[index].keys,
                         .theta = 10000,
                         .scaling = cases[index].scaling,
                         .factor = 4,
                         .low = 1,
                         .high = cases[index].scaling == TR_ROPE_YARN ? 32 : 4,
                         .attention = 1.25f,
                         .original = 64,
                         .whole = 1};
    *out = (tr_case){
        .name = "rope",
        .op = &tr__op_rope,
        .in_count = cases[index].longest ? 2 : 1,
        .in = {{.desc = {TR_F32,
                         TR_SHAPE3(cases[index].batch, cases[index].context, width)}},
               {.desc = {TR_I32, TR_SHAPE2(cases[index].batch, cases[index].context)},
                .fill = TR_FILL_PLACES,
                .bound = cases[index].longest}},
        .tolerance = 3e-7,
        .half_tolerance = 1,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_rope = {"rope", get};
