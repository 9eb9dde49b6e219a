#include "ops/cases.h"
#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"

#include <math.h>
#include <string.h>

extern const tr_case_list tr__cases_linear_cross_entropy_slice,
    tr__cases_linear_cross_entropy_slice_loss;

// The first slice, one in the middle, the last; slices of one class; chunks of one row
// and with a shorter last; logits that are kept, of rows that are gathered, too. The
// last cases are large enough for the way that big products are run.
static const struct {
    tr_shape x;
    int64_t classes, first, slice; // of all, before the slice, of the slice
    tr_weight_layout layout;
    int32_t chunk_rows;
    bool bias;
    double gradient_tolerance;
    int64_t keeps_logits;
} cases[] = {
    {{2, {1, 1}}, 2, 0, 1, TR_WEIGHT_OUT_IN, 0, true, 1e-3, 0},
    {{2, {5, 3}}, 2, 1, 1, TR_WEIGHT_OUT_IN, 0, false, 1e-3, 0},
    {{2, {5, 17}}, 7, 0, 3, TR_WEIGHT_OUT_IN, 2, false, 1e-3, 0},
    {{3, {3, 3, 5}}, 17, 3, 9, TR_WEIGHT_IN_OUT, 1, true, 1e-3, 0},
    {{3, {3, 3, 5}}, 17, 12, 5, TR_WEIGHT_OUT_IN, 0, true, 1e-3, 0},
    {{3, {2, 63, 17}}, 257, 0, 129, TR_WEIGHT_OUT_IN, 50, false, 0, 0},
    {{3, {3, 17, 63}}, 65, 63, 2, TR_WEIGHT_IN_OUT, 17, false, 0, 0},
    {{2, {17, 9}}, 12000, 4099, 4099, TR_WEIGHT_OUT_IN, 0, true, 0, 0},
    {{3, {2, 257, 64}}, 3000, 1500, 1031, TR_WEIGHT_OUT_IN, 257, false, 0, 0},
    {{2, {5, 17}}, 7, 0, 3, TR_WEIGHT_OUT_IN, 2, true, 1e-3, 1},
    {{3, {3, 3, 5}}, 87, 3, 65, TR_WEIGHT_IN_OUT, 0, false, 1e-3, 1},
    {{3, {2, 257, 64}}, 3000, 1500, 1031, TR_WEIGHT_OUT_IN, 257, true, 0, 1},
    {{3, {1, 200, 16}}, 3000, 0, 130, TR_WEIGHT_OUT_IN, 70, false, 0, 1},
};

static tr_case_input input(tr_shape shape, float scale) {
    return (tr_case_input){.desc = {TR_F32, shape}, .scale = scale};
}

static tr_shape rows_of(tr_shape x, int64_t width) {
    x.dim[x.rank - 1] = width;
    return x;
}

static tr_case_input targets(tr_shape x, int64_t classes) {
    tr_shape rows = x;
    rows.dim[--rows.rank] = 0;
    return (tr_case_input){
        .desc = {TR_I32, rows}, .fill = TR_FILL_TARGET, .bound = classes};
}

// In steps of the format. A GPU rounds logits to bf16, each by up to half a step of its
// own size: so far is the gradient of a large logit off, as the sum that is taken off
// it is the reference's (the op's own sum has the same logits). The scale of the weight
// makes logits of a deviation of 0.3 sqrt(in), and the largest are 4 of these.
static double half_tolerance(int64_t in) {
    return 2 + 0.5 * 4 * 0.3 * sqrt((double)in);
}

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    tr_shape x = cases[index].x;
    int64_t in = x.dim[x.rank - 1], slice = cases[index].slice;
    bool in_first = cases[index].layout == TR_WEIGHT_IN_OUT;
    *out = (tr_case){
        .name = cases[index].first ? "later slice" : "first slice",
        .op = &tr__op_linear_cross_entropy_slice,
        .in_count = 6,
        .in = {input(x, 1),
               input(in_first ? TR_SHAPE2(in, slice) : TR_SHAPE2(slice, in), 0.3f),
               {.desc = {TR_NONE}},
               targets(x, cases[index].classes)},
        .tolerance = 1e-5,
        .half_tolerance = half_tolerance(in),
        .always_f32 = 1u << 5,
        .gradient_tolerance = cases[index].gradient_tolerance,
    };
    if (cases[index].bias) {
        out->in[2] = input(TR_SHAPE1(slice), 0.3f);
    }
    if (cases[index].first) {
        out->in[4] = input(rows_of(x, 2), 1);
        out->in[4].desc.dtype = TR_F64;
        out->in[5] = input(rows_of(x, 2), 1);
    }
    tr_lce_slice_attr attr = {{cases[index].layout, cases[index].chunk_rows, 0},
                              cases[index].first,
                              cases[index].keeps_logits};
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_linear_cross_entropy_slice = {"head_slice", get};

static bool get_loss(int index, tr_case *out) {
    static const tr_shape shapes[] = {{2, {1, 2}}, {3, {3, 7, 2}}, {3, {2, 257, 2}}};
    if (index < 0 || index >= (int)(sizeof shapes / sizeof shapes[0])) {
        return false;
    }
    *out = (tr_case){
        .name = "after the last slice",
        .op = &tr__op_linear_cross_entropy_slice_loss,
        .in_count = 3,
        .in = {{.desc = {TR_F64, shapes[index]}},
               {.desc = {TR_F32, shapes[index]}},
               targets(shapes[index], 5)},
        .tolerance = 1e-12,
        .gradient_tolerance = 1e-6,
    };
    return true;
}

const tr_case_list tr__cases_linear_cross_entropy_slice_loss = {"head_slice_loss",
                                                                get_loss};
