#include "ops/cases.h"
#include "ops/nn/text_pool/text_pool.h"

#include <string.h>

extern const tr_case_list tr__cases_text_pool;

static const struct {
    int64_t batch, length, width;
    int32_t kind, texts;
    int64_t longest; // text of a packed sample; 0: each sample is one
    double gradient_tolerance;
} cases[] = {
    {2, 5, 3, TR_TEXT_MEAN, 1, 0, 1e-3},   {2, 5, 3, TR_TEXT_CLS, 1, 0, 1e-3},
    {2, 5, 3, TR_TEXT_LAST, 1, 0, 1e-3},   {2, 9, 4, TR_TEXT_MEAN, 4, 3, 1e-3},
    {3, 17, 5, TR_TEXT_CLS, 6, 5, 1e-3},   {1, 17, 3, TR_TEXT_LAST, 17, 4, 1e-3},
    {1, 1, 1, TR_TEXT_MEAN, 1, 1, 1e-3},   {4, 128, 63, TR_TEXT_MEAN, 16, 20, 0},
    {1, 257, 384, TR_TEXT_LAST, 9, 90, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    int64_t batch = cases[index].batch, length = cases[index].length;
    tr_text_pool_attr attr = {cases[index].kind, cases[index].texts};
    *out = (tr_case){
        .name = "text pool",
        .op = &tr__op_text_pool,
        .in_count = cases[index].longest ? 2 : 1,
        .in = {{.desc = {TR_F32, TR_SHAPE3(batch, length, cases[index].width)}},
               {.desc = {TR_I32, TR_SHAPE2(batch, length)},
                .fill = TR_FILL_PLACES,
                .bound = cases[index].longest}},
        .tolerance = 1e-6,
        .half_tolerance = 1,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_text_pool = {"text_pool", get};
