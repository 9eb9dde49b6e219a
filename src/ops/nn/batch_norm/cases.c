#include "ops/cases.h"
#include "ops/nn/batch_norm/batch_norm.h"

#include <string.h>

extern const tr_case_list tr__cases_batch_norm;
extern const tr_case_list tr__cases_batch_stat;

typedef struct case_shape {
    tr_shape shape;
    double gradient_tolerance;
} case_shape;

static const case_shape shapes[] = {
    {{2, {3, 1}}, 2e-3},        {{2, {5, 3}}, 2e-3},      {{4, {2, 3, 3, 2}}, 2e-3},
    {{4, {4, 8, 8, 16}}, 0},    {{4, {3, 5, 7, 17}}, 0},  {{4, {2, 4, 4, 64}}, 0},
    {{4, {32, 16, 16, 16}}, 0}, {{4, {2, 3, 2, 300}}, 0},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

static bool get_stat(int index, tr_case *out) {
    if (index < 0 || index >= SHAPES) {
        return false;
    }
    *out = (tr_case){
        .name = "batch_stat",
        .op = &tr__op_batch_stat,
        .in_count = 1,
        .in = {{.desc = {TR_F32, shapes[index].shape}}},
        .tolerance = 3e-6,
        .gradient_tolerance = shapes[index].gradient_tolerance,
        .half_tolerance = 1,
    };
    tr_batch_stat_attr attr = {.momentum = 0.1f};
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

// With and without ReLU and residual. Finite differences are tried where no ReLU may
// lie within a step of 0.
static bool get_norm(int index, tr_case *out) {
    if (index < 0 || index >= 4 * SHAPES) {
        return false;
    }
    const case_shape *shape = &shapes[index / 4];
    tr_batch_norm_attr attr = {.epsilon = 0.01f, .relu = index % 2};
    bool residual = index / 2 % 2;
    int64_t channels = shape->shape.dim[shape->shape.rank - 1];
    tr_tensor_desc x = {TR_F32, shape->shape}, vector = {TR_F32, TR_SHAPE1(channels)};
    *out = (tr_case){
        .name = "batch_norm",
        .op = &tr__op_batch_norm,
        .in_count = 7,
        .in = {{.desc = x, .scale = 3},
               {.desc = {TR_F64, TR_SHAPE2(3, channels)}, .fill = TR_FILL_POSITIVE},
               {.desc = vector},
               {.desc = vector},
               {.desc = residual ? x : (tr_tensor_desc){0}},
               {.desc = vector},
               {.desc = vector, .fill = TR_FILL_POSITIVE}},
        .tolerance = 3e-6,
        .gradient_tolerance = attr.relu ? 0 : shape->gradient_tolerance,
        .half_tolerance = 1,
        .always_f32 = 1 << 5 | 1 << 6,
    };
    memcpy(out->attr, &attr, sizeof attr);
    return true;
}

const tr_case_list tr__cases_batch_stat = {"batch_stat", get_stat};
const tr_case_list tr__cases_batch_norm = {"batch_norm", get_norm};
