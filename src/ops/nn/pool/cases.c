#include "ops/cases.h"
#include "ops/nn/pool/pool.h"

#include <string.h>

extern const tr_case_list tr__cases_pool;

static const struct {
    tr_shape x;
    tr_pool_attr attr;
    double gradient_tolerance;
} cases[] = {
    {{4, {2, 3, 5, 3}}, {TR_POOL_AVERAGE, 0, 0, 0}, 1e-3},
    {{4, {2, 3, 2, 2}}, {TR_POOL_MAX, 0, 0, 0}, 1e-3},
    {{4, {2, 5, 4, 2}}, {TR_POOL_AVERAGE, 3, 2, 1}, 1e-3},
    {{4, {1, 5, 5, 2}}, {TR_POOL_MAX, 3, 2, 1}, 1e-3},
    {{4, {2, 6, 6, 3}}, {TR_POOL_AVERAGE, 2, 2, 0}, 1e-3},
    {{4, {3, 9, 8, 17}}, {TR_POOL_MAX, 3, 2, 1}, 0},
    {{4, {4, 16, 16, 64}}, {TR_POOL_MAX, 3, 2, 1}, 0},
    {{4, {4, 16, 16, 64}}, {TR_POOL_AVERAGE, 2, 1, 0}, 0},
    {{4, {5, 4, 4, 64}}, {TR_POOL_AVERAGE, 0, 0, 0}, 0},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    *out = (tr_case){
        .name = cases[index].attr.kind == TR_POOL_MAX ? "max pool" : "average pool",
        .op = &tr__op_pool,
        .in_count = 1,
        .in = {{.desc = {TR_F32, cases[index].x}, .scale = 3}},
        .tolerance = 1e-6,
        .gradient_tolerance = cases[index].gradient_tolerance,
        .half_tolerance = 1,
    };
    memcpy(out->attr, &cases[index].attr, sizeof cases[index].attr);
    return true;
}

const tr_case_list tr__cases_pool = {"pool", get};
