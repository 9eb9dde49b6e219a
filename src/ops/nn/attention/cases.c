#include "ops/cases.h"
#include "ops/nn/attention/attention.h"

#include <string.h>

extern const tr_case_list tr__cases_attention;

// Finite differences are tried where the reference is quick. The largest ones go over
// several tiles and share heads between threads.
static const struct {
    int64_t batch, context, heads, depth;
    float dropout;
    double gradient_tolerance;
    int64_t kv_heads, window;
    int64_t longest; // document of a packed sample; 0: each sample is one
    int32_t both;    // ways
} cases[] = {
    {1, 1, 1, 1, 0, 2e-3, 0, 0, 0, 0},
    {2, 3, 1, 3, 0, 2e-3, 0, 0, 0, 0},
    {3, 5, 2, 4, 0.25f, 2e-3, 0, 0, 0, 0},
    {1, 17, 3, 8, 0, 2e-3, 0, 0, 0, 0},
    {2, 17, 1, 5, 0.1f, 2e-3, 0, 0, 0, 0},
    {1, 63, 4, 16, 0, 0, 0, 0, 0, 0},
    {3, 64, 4, 32, 0.2f, 0, 0, 0, 0, 0},
    {1, 65, 2, 63, 0, 0, 0, 0, 0, 0},
    {2, 129, 2, 80, 0.1f, 0, 0, 0, 0, 0},
    {1, 257, 1, 64, 0, 0, 0, 0, 0, 0},
    {1, 257, 3, 33, 0.5f, 0, 0, 0, 0, 0},
    {1, 130, 1, 128, 0, 0, 0, 0, 0, 0},
    // Shared keys, windows, both.
    {2, 5, 4, 3, 0, 2e-3, 2, 0, 0, 0},
    {1, 9, 3, 4, 0.25f, 2e-3, 1, 0, 0, 0},
    {1, 17, 2, 4, 0, 2e-3, 0, 5, 0, 0},
    {2, 17, 6, 3, 0.1f, 2e-3, 3, 1, 0, 0},
    {2, 130, 9, 32, 0, 0, 3, 0, 0, 0},
    {1, 257, 4, 64, 0.2f, 0, 2, 70, 0, 0},
    {1, 300, 2, 33, 0, 0, 1, 64, 0, 0},
    {3, 257, 3, 16, 0, 0, 3, 129, 0, 0},
    {1, 200, 2, 40, 0, 0, 1, 1000, 0, 0},
    // Packed, with shared keys and windows.
    {2, 5, 1, 3, 0, 2e-3, 0, 0, 3, 0},
    {1, 17, 2, 4, 0.25f, 2e-3, 0, 0, 8, 0},
    {2, 17, 4, 3, 0, 2e-3, 2, 3, 9, 0},
    {2, 130, 2, 32, 0, 0, 0, 0, 1, 0},
    {2, 257, 4, 64, 0, 0, 2, 0, 90, 0},
    {3, 300, 3, 33, 0.2f, 0, 1, 0, 70, 0},
    {2, 513, 2, 16, 0, 0, 0, 129, 300, 0},
    {1, 400, 1, 80, 0, 0, 0, 0, 400, 0},
    // The tiles of other backends, in heads of several sizes: their edges, and more
    // than one; a head that is taken in pieces.
    {1, 64, 1, 64, 0, 0, 0, 0, 0, 0},
    {1, 65, 2, 64, 0.1f, 0, 1, 0, 0, 0},
    {1, 130, 1, 64, 0.2f, 0, 0, 70, 0, 0},
    {1, 129, 1, 64, 0, 0, 0, 0, 50, 0},
    {1, 40, 2, 128, 0.1f, 0, 1, 0, 0, 0},
    {1, 66, 1, 128, 0, 0, 0, 33, 40, 0},
    {1, 70, 1, 80, 0.3f, 0, 0, 0, 0, 0},
    {1, 65, 1, 100, 0, 0, 0, 0, 0, 0},
    {1, 18, 3, 256, 0.1f, 0, 1, 5, 0, 0},
    {1, 20, 1, 264, 0, 0, 0, 0, 0, 0},
    // Both ways: whole samples, packed ones, shared keys, several tiles.
    {1, 1, 1, 1, 0, 2e-3, 0, 0, 0, 1},
    {2, 5, 2, 4, 0, 2e-3, 0, 0, 0, 1},
    {2, 17, 4, 3, 0.25f, 2e-3, 2, 0, 0, 1},
    {2, 9, 1, 5, 0, 2e-3, 0, 0, 4, 1},
    {1, 17, 3, 4, 0.1f, 2e-3, 1, 0, 8, 1},
    {2, 17, 1, 3, 0, 2e-3, 0, 0, 1, 1},
    {1, 64, 2, 32, 0, 0, 0, 0, 0, 1},
    {1, 65, 12, 64, 0.1f, 0, 0, 0, 0, 1},
    {3, 130, 2, 33, 0, 0, 1, 0, 0, 1},
    {1, 257, 3, 80, 0.2f, 0, 0, 0, 0, 1},
    {2, 257, 4, 64, 0, 0, 2, 0, 90, 1},
    {3, 300, 3, 33, 0.2f, 0, 1, 0, 70, 1},
    {2, 513, 3, 32, 0, 0, 0, 0, 300, 1},
    {2, 200, 2, 16, 0, 0, 0, 0, 3, 1},
    {1, 400, 1, 80, 0, 0, 0, 0, 400, 1},
    {1, 66, 1, 128, 0, 0, 0, 0, 40, 1},
    // What libraries compute: heads of 64 and of 128, shared or not, and both ways.
    {3, 64, 2, 64, 0, 0, 0, 0, 0, 0},
    {2, 128, 4, 64, 0, 0, 2, 0, 0, 0},
    {1, 64, 3, 128, 0, 0, 1, 0, 0, 0},
    {2, 64, 2, 64, 0, 0, 0, 0, 0, 1},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    tr_attention_attr attr = {.heads = (int32_t)cases[index].heads,
                              .dropout = cases[index].dropout,
                              .draw_id = 3,
                              .kv_heads = (int32_t)cases[index].kv_heads,
                              .window = (int32_t)cases[index].window,
                              .both = cases[index].both};
    int64_t pairs = attr.kv_heads > 0 ? attr.kv_heads : attr.heads;
    int64_t width = (attr.heads + 2 * pairs) * cases[index].depth;
    tr_shape qkv = TR_SHAPE3(cases[index].batch, cases[index].context, width);
    *out = (tr_case){
        .name = "attention",
        .op = &tr__op_attention,
        .in_count = cases[index].longest ? 2 : 1,
        .in = {{.desc = {TR_F32, qkv}},
               {.desc = {TR_I32, TR_SHAPE2(qkv.dim[0], qkv.dim[1])},
                .fill = TR_FILL_PLACES,
                .bound = cases[index].longest}},
        .tolerance = 2e-5,
        .half_tolerance = 6,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_attention = {"attention", get};
