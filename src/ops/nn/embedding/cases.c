#include "ops/cases.h"
#include "ops/nn/embedding/embedding.h"

#include <string.h>

extern const tr_case_list tr__cases_embedding;

// Slices: the table has `tokens` rows, from id `first`, of a larger vocabulary.
static const struct {
    int64_t batch, length, vocabulary, positions, width; // positions 0: no table
    double gradient_tolerance;
    int64_t first, tokens; // tokens 0: all of the vocabulary
    bool before;           // there is a slice before
    int64_t longest;       // document of a packed sample; 0: each sample is one
    int64_t padding;       // 1 + an id without a gradient, which is no slope; 0: none
} cases[] = {
    {1, 1, 1, 1, 1, 1e-3, 0, 0, false, 0, 0},
    {2, 3, 5, 4, 3, 1e-3, 0, 0, false, 0, 0},
    {3, 2, 7, 0, 5, 1e-3, 0, 0, false, 0, 0},
    {3, 17, 11, 63, 17, 0, 0, 0, false, 0, 0},
    {2, 63, 257, 0, 63, 0, 0, 0, false, 0, 0},
    {1, 257, 3, 257, 257, 0, 0, 0, false, 0, 0},
    {4, 128, 300, 128, 160, 0, 0, 0, false, 0, 0},
    {2, 5, 7, 6, 3, 1e-3, 0, 3, false, 0, 0},
    {2, 5, 7, 0, 3, 1e-3, 0, 1, false, 0, 0},
    {3, 5, 7, 5, 3, 1e-3, 3, 2, true, 0, 0},
    {3, 5, 4, 0, 1, 1e-3, 3, 1, true, 0, 0},
    {2, 63, 257, 63, 17, 0, 100, 63, true, 0, 0},
    {4, 128, 300, 0, 160, 0, 257, 43, true, 0, 0},
    {2, 5, 7, 6, 3, 1e-3, 0, 0, false, 3, 0},
    {3, 5, 7, 5, 3, 1e-3, 3, 2, true, 4, 0},
    {4, 128, 300, 128, 160, 0, 0, 0, false, 50, 0},
    {5, 67, 40, 67, 24, 0, 0, 0, false, 0, 0},
    {5, 67, 40, 67, 24, 0, 3, 20, true, 9, 0},
    {2, 9, 3, 9, 5, 0, 0, 0, false, 0, 1},
    {5, 67, 40, 67, 24, 0, 3, 20, true, 9, 8},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    int64_t width = cases[index].width, positions = cases[index].positions;
    int64_t batch = cases[index].batch, length = cases[index].length;
    int64_t tokens = cases[index].tokens;
    tr_embedding_attr attr = {.first = cases[index].first,
                              .padding = cases[index].padding};
    tr_shape ids = TR_SHAPE2(batch, length);
    tr_shape table = TR_SHAPE2(tokens ? tokens : cases[index].vocabulary, width);
    *out = (tr_case){
        .name = tokens      ? "slice of an embedding"
                : positions ? "embedding"
                            : "embedding without positions",
        .op = &tr__op_embedding,
        .in_count = cases[index].longest  ? 5
                    : cases[index].before ? 4
                                          : 3,
        .in = {{.desc = {TR_I32, ids},
                .fill = TR_FILL_INDEX,
                .bound = cases[index].vocabulary},
               {.desc = {TR_F32, table}},
               {.desc = {TR_NONE, {0}}},
               {.desc = {TR_NONE, {0}}},
               {.desc = {TR_NONE, {0}}}},
        .tolerance = 1e-6,
        .half_tolerance = 2,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    if (positions) {
        out->in[2].desc = (tr_tensor_desc){TR_F32, TR_SHAPE2(positions, width)};
    }
    if (cases[index].longest) {
        out->in[4] = (tr_case_input){.desc = {TR_I32, ids},
                                     .fill = TR_FILL_PLACES,
                                     .bound = cases[index].longest};
    }
    if (cases[index].before) {
        out->in[3].desc = (tr_tensor_desc){TR_F32, TR_SHAPE3(batch, length, width)};
    }
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_embedding = {"embedding", get};
