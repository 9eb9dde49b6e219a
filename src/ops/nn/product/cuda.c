// The matrices one after the other.
#include "backend/cuda/driver.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/launch.h"
#include "ops/nn/product/sizes.h"

extern const tr_cuda_kernels tr__cuda_kernels_product[];

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_product_sizes s = tr__product_sizes(desc);
    tr_dtype real = desc->in[0].dtype;
    size_t bytes = tr_dtype_bytes(real);
    const char *a = launch->in[0], *b = launch->in[1];
    char *y = launch->out[0];
    for (int64_t i = 0; i < s.matrices; i++) {
        tr__cuda_multiply(launch,
                          &(tr_cuda_product){.m = s.m,
                                             .n = s.n,
                                             .k = s.k,
                                             .a = a + (size_t)(i * s.m * s.k) * bytes,
                                             .b = b + (size_t)(i * s.k * s.n) * bytes,
                                             .c = y + (size_t)(i * s.m * s.n) * bytes,
                                             .real = real,
                                             .c_real = real,
                                             .a_row = s.a_transposed ? s.m : s.k,
                                             .b_row = s.b_transposed ? s.k : s.n,
                                             .c_row = s.n,
                                             .a_transposed = s.a_transposed,
                                             .b_transposed = s.b_transposed,
                                             .beta = launch->accumulate & 1});
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static const tr_kernel product = {.name = "product.cuda",
                                  .supports = supports,
                                  .cost = tr__product_cost,
                                  .launch = launch};

const tr_cuda_kernels tr__cuda_kernels_product[] = {
    {&tr__op_product, &product},
    {NULL, NULL},
};
