#include "ops/cases.h"
#include "ops/attention/attention.h"

#include <string.h>

extern const tr_case_list tr__cases_attention;

// Finite differences are tried where the reference is quick. The largest ones go over
// several tiles and share heads between threads.
static const struct {
    int64_t batch, context, heads, depth;
    float dropout;
    double gradient_tolerance;
} cases[] = {
    {1, 1, 1, 1, 0, 2e-3},   {2, 3, 1, 3, 0, 2e-3},     {3, 5, 2, 4, 0.25f, 2e-3},
    {1, 17, 3, 8, 0, 2e-3},  {2, 17, 1, 5, 0.1f, 2e-3}, {1, 63, 4, 16, 0, 0},
    {3, 64, 4, 32, 0.2f, 0}, {1, 65, 2, 63, 0, 0},      {2, 129, 2, 80, 0.1f, 0},
    {1, 257, 1, 64, 0, 0},   {1, 257, 3, 33, 0.5f, 0},  {1, 130, 1, 128, 0, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    tr_attention_attr attr = {.heads = (int32_t)cases[index].heads,
                              .dropout = cases[index].dropout,
                              .draw_id = 3};
    int64_t width = cases[index].heads * cases[index].depth;
    tr_shape qkv = TR_SHAPE3(cases[index].batch, cases[index].context, 3 * width);
    *out = (tr_case){
        .name = "attention",
        .op = &tr__op_attention,
        .in_count = 1,
        .in = {{.desc = {TR_F32, qkv}}},
        .tolerance = 2e-5,
        .half_tolerance = 6,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_attention = {"attention", get};
