#include "ops/nn/linear/cpu_products.h"

tr_matmul_desc tr__product_output(const tr_linear_dims *dims, int threads) {
    return (tr_matmul_desc){
        .m = dims->rows,
        .n = dims->out,
        .k = dims->in,
        .a_row = dims->in,
        .a_col = 1,
        .b_row = tr__weight_in_step(dims),
        .b_col = tr__weight_out_step(dims),
        .c_row = dims->out,
        .threads = threads,
    };
}

static int64_t dy_row(const tr_linear_dims *dims) {
    return dims->dy_row ? dims->dy_row : dims->out;
}

tr_matmul_desc tr__product_input(const tr_linear_dims *dims, int threads) {
    return (tr_matmul_desc){
        .m = dims->rows,
        .n = dims->in,
        .k = dims->out,
        .a_row = dy_row(dims),
        .a_col = 1,
        .b_row = tr__weight_out_step(dims),
        .b_col = tr__weight_in_step(dims),
        .c_row = dims->in,
        .threads = threads,
    };
}

tr_matmul_desc tr__product_weight(const tr_linear_dims *dims, int threads) {
    bool in_first = dims->layout == TR_WEIGHT_IN_OUT;
    int64_t first = in_first ? dims->in : dims->out;
    int64_t second = in_first ? dims->out : dims->in;
    return (tr_matmul_desc){
        .m = first,
        .n = second,
        .k = dims->rows,
        .a_row = 1,
        .a_col = in_first ? first : dy_row(dims),
        .b_row = in_first ? dy_row(dims) : second,
        .b_col = 1,
        .c_row = second,
        .threads = threads,
    };
}

tr_status tr__product_weight_run(tr_matmul *product, const tr_linear_dims *dims,
                                 bool accumulate, const void *dy, const void *x,
                                 float *dweight, void *workspace) {
    bool in_first = dims->layout == TR_WEIGHT_IN_OUT;
    return tr__matmul_run(product, accumulate, in_first ? x : dy, in_first ? dy : x,
                          NULL, dweight, workspace);
}
