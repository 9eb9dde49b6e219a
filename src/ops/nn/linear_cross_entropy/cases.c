#include "ops/cases.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

#include <string.h>

extern const tr_case_list tr__cases_linear_cross_entropy;

// One chunk, several, several with a shorter last, chunks of one row. The last case is
// large enough for the way that big products are run.
static const struct {
    tr_shape x;
    int64_t vocabulary;
    tr_weight_layout layout;
    int32_t chunk_rows;
    bool bias;
    double gradient_tolerance;
} cases[] = {
    {{2, {1, 1}}, 1, TR_WEIGHT_OUT_IN, 0, true, 0},
    {{2, {1, 3}}, 2, TR_WEIGHT_OUT_IN, 0, false, 1e-3},
    {{2, {5, 17}}, 3, TR_WEIGHT_IN_OUT, 2, true, 1e-3},
    {{3, {3, 3, 5}}, 17, TR_WEIGHT_OUT_IN, 1, true, 1e-3},
    {{2, {64, 500}}, 10, TR_WEIGHT_OUT_IN, 0, true, 0},
    {{3, {2, 63, 17}}, 257, TR_WEIGHT_OUT_IN, 50, false, 0},
    {{3, {3, 17, 63}}, 65, TR_WEIGHT_IN_OUT, 17, false, 0},
    {{2, {17, 9}}, 4099, TR_WEIGHT_OUT_IN, 0, true, 0},
    {{3, {2, 65, 63}}, 257, TR_WEIGHT_IN_OUT, 65, true, 0},
    {{2, {9, 24}}, 264, TR_WEIGHT_OUT_IN, 4, true, 0},
    {{2, {3, 4}}, 6200, TR_WEIGHT_OUT_IN, 0, false, 0},
    {{3, {2, 257, 64}}, 1031, TR_WEIGHT_OUT_IN, 257, false, 0},
};

static tr_case_input input(tr_shape shape, float scale) {
    return (tr_case_input){.desc = {TR_F32, shape}, .scale = scale};
}

enum { SHAPES = sizeof cases / sizeof cases[0] };

// The loss, then the logits of each sample's last target, then those of every row.
static const struct {
    const char *name;
    const tr_op *op;
} ops[] = {{"head", &tr__op_linear_cross_entropy},
           {"head_logits", &tr__op_linear_cross_entropy_logits},
           {"head_logits_rows", &tr__op_linear_cross_entropy_logits_rows}};

static bool get(int number, tr_case *out) {
    int index = number % SHAPES, which = number / SHAPES;
    if (number < 0 || which >= (int)(sizeof ops / sizeof ops[0])) {
        return false;
    }
    bool has_backward = ops[which].op->backward;
    tr_shape rows = cases[index].x;
    int64_t in = rows.dim[--rows.rank], width = cases[index].vocabulary;
    rows.dim[rows.rank] = 0;
    bool in_first = cases[index].layout == TR_WEIGHT_IN_OUT;
    *out = (tr_case){
        .name = ops[which].name,
        .op = ops[which].op,
        .in_count = 4,
        .in = {input(cases[index].x, 1),
               input(in_first ? TR_SHAPE2(in, width) : TR_SHAPE2(width, in), 0.3f),
               {.desc = {TR_NONE}},
               {.desc = {TR_I32, rows}, .fill = TR_FILL_TARGET, .bound = width}},
        .tolerance = 1e-5,
        .half_tolerance = 2,
        .gradient_tolerance = has_backward ? cases[index].gradient_tolerance : 0,
    };
    if (cases[index].bias) {
        out->in[2] = input(TR_SHAPE1(width), 0.3f);
    }
    tr_lce_attr attr = {cases[index].layout, cases[index].chunk_rows, 0};
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_linear_cross_entropy = {"head", get};
