// The matrices one after the other, each by the backend's product.
#include "backend/cpu/matmul.h"
#include "ops/nn/product/sizes.h"

extern const tr_kernel tr__product_kernel;

static tr_status prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    tr_product_sizes s = tr__product_sizes(desc);
    tr_matmul_desc product = {
        .m = s.m,
        .n = s.n,
        .k = s.k,
        .a_row = s.a_transposed ? 1 : s.k,
        .a_col = s.a_transposed ? s.m : 1,
        .b_row = s.b_transposed ? 1 : s.n,
        .b_col = s.b_transposed ? s.k : 1,
        .c_row = s.n,
        .type = desc->in[0].dtype,
        .c_type = desc->in[0].dtype,
        .fresh = desc->fresh & 1,
        .accumulate = desc->accumulate & 1,
        .threads = desc->target.workers,
    };
    return tr__matmul_create(&product, (tr_matmul **)state, err);
}

static void release(void *state) {
    tr__matmul_destroy(state);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)desc;
    return tr__matmul_workspace(state);
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_product_sizes s = tr__product_sizes(desc);
    size_t bytes = tr_dtype_bytes(desc->in[0].dtype);
    const char *a = launch->in[0], *b = launch->in[1];
    char *y = launch->out[0];
    for (int64_t i = 0; i < s.matrices; i++) {
        tr__launch_note(launch,
                        tr__matmul_run(state, launch->accumulate & 1,
                                       a + (size_t)(i * s.m * s.k) * bytes,
                                       b + (size_t)(i * s.k * s.n) * bytes, NULL,
                                       y + (size_t)(i * s.m * s.n) * bytes,
                                       launch->workspace));
    }
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[0].dtype;
    return tr__matmul_has(real) && tr__desc_real(desc, real, 0, 0);
}

const tr_kernel tr__product_kernel = {
    .name = "product.cpu",
    .supports = supports,
    .cost = tr__product_cost,
    .prepare = prepare,
    .workspace = workspace,
    .launch = launch,
    .release = release,
};
