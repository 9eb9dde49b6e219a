#include "ops/cases.h"
#include "ops/nn/product/product.h"

#include <string.h>

extern const tr_case_list tr__cases_product;

static const struct {
    int64_t batch, count, m, k, n;
    tr_product_attr attr;
} cases[] = {
    {1, 1, 1, 1, 1, {0, 0}},    {2, 2, 3, 4, 5, {0, 0}},   {2, 1, 3, 4, 2, {0, 1}},
    {1, 3, 3, 2, 4, {1, 0}},    {2, 1, 2, 3, 3, {1, 1}},   {2, 3, 33, 16, 35, {0, 1}},
    {3, 2, 33, 35, 16, {0, 0}}, {2, 2, 65, 20, 9, {1, 0}},
};

static bool get(int index, tr_case *out) {
    if (index < 0 || index >= (int)(sizeof cases / sizeof cases[0])) {
        return false;
    }
    int64_t batch = cases[index].batch, count = cases[index].count;
    int64_t m = cases[index].m, k = cases[index].k, n = cases[index].n;
    tr_shape a = TR_SHAPE4(batch, count, m, k), b = TR_SHAPE4(batch, count, k, n);
    if (cases[index].attr.a_transposed) {
        a = TR_SHAPE4(batch, count, k, m);
    }
    if (cases[index].attr.b_transposed) {
        b = TR_SHAPE4(batch, count, n, k);
    }
    *out = (tr_case){
        .name = "product",
        .op = &tr__op_product,
        .in_count = 2,
        .in = {{.desc = {TR_F32, a}}, {.desc = {TR_F32, b}}},
        .tolerance = 2e-6,
        .half_tolerance = 1,
        .gradient_tolerance = index < 5 ? 1e-3 : 0,
    };
    memcpy(out->attr, &cases[index].attr, sizeof cases[index].attr);
    return true;
}

const tr_case_list tr__cases_product = {"product", get};
