#include "ops/cases.h"
#include "ops/nn/contrastive/contrastive.h"

#include <string.h>

extern const tr_case_list tr__cases_contrastive_pool;

// The loss itself is compared with PyTorch's by the goldens "bert-pairs" and
// "roberta-triples".
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
        .in_count = 1,
        .in = {{.desc = {TR_F32, shape}}},
        .tolerance = 1e-6,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_contrastive_pool = {"contrastive_pool", get_pool};
