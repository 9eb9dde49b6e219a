#include "ops/cases.h"
#include "ops/nn/contrastive/contrastive.h"

#include <string.h>

extern const tr_case_list tr__cases_contrastive_pool, tr__cases_contrastive;

static const struct {
    int64_t batch, texts, width, groups;
    double gradient_tolerance;
} cases[] = {
    {1, 2, 3, 1, 1e-3}, {2, 2, 3, 5, 1e-3}, {3, 3, 4, 7, 1e-3},
    {2, 3, 17, 9, 0},   {4, 2, 384, 33, 0},
};

enum { CASES = sizeof cases / sizeof cases[0] };

static bool get_pool(int index, tr_case *out) {
    if (index < 0 || index >= CASES) {
        return false;
    }
    tr_contrastive_pool_attr attr = {cases[index].groups};
    tr_shape shape =
        TR_SHAPE3(cases[index].batch, cases[index].texts, cases[index].width);
    *out = (tr_case){
        .name = "contrastive pool",
        .op = &tr__op_contrastive_pool,
        .in_count = 2,
        .in = {{.desc = {TR_F32, shape}},
               {.desc = {TR_I32, TR_SHAPE2(shape.dim[0], shape.dim[1])},
                .fill = TR_FILL_INDEX,
                .bound = 1 << 20}},
        .tolerance = 1e-6,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_contrastive_pool = {"contrastive_pool", get_pool};

// Without a pool, the groups of a micro-batch are each other's negatives. What a pool
// is filled with has marks, and no embeddings: as an op it is a function of both.
static const struct {
    int64_t batch, texts, width, groups; // 0: no pool
    bool symmetric, mask_equal, scale;
    double gradient_tolerance;
} losses[] = {
    {2, 2, 3, 5, true, false, false, 1e-3}, {3, 3, 4, 7, true, true, true, 1e-3},
    {3, 3, 4, 7, false, false, true, 1e-3}, {1, 2, 3, 1, true, false, true, 0},
    {5, 2, 17, 0, true, true, true, 0},     {7, 3, 5, 0, false, true, false, 0},
    {130, 2, 24, 260, true, true, true, 0}, {17, 3, 33, 300, true, false, true, 0},
    {16, 3, 8, 700, false, true, false, 0}, {3, 2, 64, 1030, true, false, false, 0},
};

enum { LOSSES = sizeof losses / sizeof losses[0] };

static bool get_loss(int index, tr_case *out) {
    if (index < 0 || index >= LOSSES) {
        return false;
    }
    int64_t batch = losses[index].batch, texts = losses[index].texts;
    int64_t width = losses[index].width, groups = losses[index].groups;
    tr_contrastive_attr attr = {.symmetric = losses[index].symmetric,
                                .mask_equal = losses[index].mask_equal,
                                .temperature = 0.4};
    *out = (tr_case){
        .name = "contrastive",
        .op = &tr__op_contrastive,
        .in_count = 4,
        .in = {{.desc = {TR_F32, TR_SHAPE3(batch, texts, width)}, .scale = 0.5f},
               {.desc = {TR_I32, TR_SHAPE2(batch, texts)},
                .fill = TR_FILL_INDEX,
                .bound = batch * texts / 2 + 1},
               {.desc = {TR_NONE}},
               {.desc = {TR_NONE}}},
        .tolerance = 1e-5,
        .gradient_tolerance = losses[index].gradient_tolerance,
    };
    if (groups > 0) {
        tr_shape pool = TR_SHAPE3(groups, texts, width + TR_TEXT_MARK);
        out->in[2] = (tr_case_input){
            .desc = {TR_F32, pool}, .fill = TR_FILL_POSITIVE, .scale = 0.5f};
    }
    if (losses[index].scale) {
        out->in[3] = (tr_case_input){.desc = {TR_F32, {0}}};
    }
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_contrastive = {"contrastive", get_loss};
