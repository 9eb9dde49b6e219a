#include "ops/cases.h"
#include "ops/embedding/embedding.h"

extern const tr_case_list tr__cases_embedding;

static const struct {
    int64_t batch, length, vocabulary, positions, width; // positions 0: no table
    double gradient_tolerance;
} cases[] = {
    {1, 1, 1, 1, 1, 1e-3},      {2, 3, 5, 4, 3, 1e-3},  {3, 2, 7, 0, 5, 1e-3},
    {3, 17, 11, 63, 17, 0},     {2, 63, 257, 0, 63, 0}, {1, 257, 3, 257, 257, 0},
    {4, 128, 300, 128, 160, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    int64_t width = cases[index].width, positions = cases[index].positions;
    tr_shape ids = TR_SHAPE2(cases[index].batch, cases[index].length);
    tr_shape table = TR_SHAPE2(cases[index].vocabulary, width);
    *out = (tr_case){
        .name = positions ? "embedding" : "embedding without positions",
        .op = &tr__op_embedding,
        .in_count = 3,
        .in = {{.desc = {TR_I32, ids},
                .fill = TR_FILL_INDEX,
                .bound = cases[index].vocabulary},
               {.desc = {TR_F32, table}},
               {.desc = {TR_NONE, {0}}}},
        .tolerance = 1e-6,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    if (positions) {
        out->in[2].desc = (tr_tensor_desc){TR_F32, TR_SHAPE2(positions, width)};
    }
    return true;
}

const tr_case_list tr__cases_embedding = {"embedding", get};
