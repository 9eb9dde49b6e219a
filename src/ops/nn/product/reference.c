#include "ops/nn/product/sizes.h"

extern const tr_kernel tr__product_reference;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *a = launch->in[0], *b = launch->in[1]; // [matrices, m, k], [.., k, n]
    float *y = launch->out[0];                          // [matrices, m, n]
    tr_product_sizes s = tr__product_sizes(desc);
    for (int64_t at = 0; at < s.matrices * s.m * s.n; at++) {
        int64_t j = at % s.n, i = at / s.n % s.m, matrix = at / s.n / s.m;
        double sum = 0;
        for (int64_t p = 0; p < s.k; p++) {
            int64_t in_a = s.a_transposed ? p * s.m + i : i * s.k + p;
            int64_t in_b = s.b_transposed ? j * s.k + p : p * s.n + j;
            sum += (double)a[matrix * s.m * s.k + in_a] *
                   (double)b[matrix * s.k * s.n + in_b];
        }
        y[at] = (float)(launch->accumulate & 1 ? y[at] + sum : sum);
    }
}

const tr_kernel tr__product_reference = {
    .name = "product.reference",
    .supports = tr__desc_f32,
    .cost = tr__product_cost,
    .launch = launch,
};
