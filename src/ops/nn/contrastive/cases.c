#include "ops/cases.h"
#include "ops/nn/contrastive/contrastive.h"

#include <string.h>

extern const tr_case_list tr__cases_contrastive, tr__cases_contrastive_pool;

static const struct {
    int64_t batch, texts, width, groups;
    int32_t symmetric;
    double temperature, gradient_tolerance;
} cases[] = {
    {1, 2, 3, 1, 0, 1, 1e-3},   {2, 2, 3, 5, 0, 1, 1e-3}, {2, 2, 3, 5, 1, 2, 1e-3},
    {3, 3, 4, 7, 1, 1, 1e-3},   {3, 3, 4, 7, 0, 2, 1e-3}, {2, 3, 17, 9, 1, 0.5, 0},
    {4, 2, 384, 33, 1, 4.0, 0},
};

enum { CASES = sizeof cases / sizeof cases[0] };

// The marks of the pool are positive numbers: each group is there.
static bool get(int index, tr_case *out) {
    if (index < 0 || index >= CASES) {
        return false;
    }
    int64_t batch = cases[index].batch, texts = cases[index].texts;
    int64_t width = cases[index].width;
    tr_contrastive_attr attr = {1, cases[index].symmetric, cases[index].temperature};
    *out = (tr_case){
        .name = attr.symmetric ? "contrastive, both ways" : "contrastive",
        .op = &tr__op_contrastive,
        .in_count = 3,
        .in = {{.desc = {TR_F32, TR_SHAPE3(batch, texts, width)}},
               {.desc = {TR_I32, TR_SHAPE2(batch, texts)},
                .fill = TR_FILL_INDEX,
                .bound = 9},
               {.desc = {TR_F32, TR_SHAPE3(cases[index].groups, texts, width + 1)},
                .fill = TR_FILL_POSITIVE}},
        .tolerance = 1e-5,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

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
        .in_count = 1,
        .in = {{.desc = {TR_F32, shape}}},
        .tolerance = 1e-6,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_contrastive = {"contrastive", get};
const tr_case_list tr__cases_contrastive_pool = {"contrastive_pool", get_pool};
