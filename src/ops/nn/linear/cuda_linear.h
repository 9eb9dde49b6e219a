// What launches of other ops use, too.
#ifndef TR_OPS_NN_LINEAR_CUDA_LINEAR_H
#define TR_OPS_NN_LINEAR_CUDA_LINEAR_H

#include "backend/cuda/kernels.h"
#include "ops/nn/linear/cuda.h"
#include "ops/nn/linear/dims.h"

void tr__cuda_bias(const tr_launch *launch, tr_cuda_bias_args args);
// The sums of all rows; args.part is not looked at. parts: room for the sums of the
// parts that rows are cut into, so many bytes; NULL: one block sums all rows of its
// columns, which is quick where there are many columns, or few rows.
void tr__cuda_column_sums(const tr_launch *launch, tr_cuda_column_sums_args args,
                          float *parts);
size_t tr__cuda_column_sums_bytes(int64_t rows, int64_t width);

// ---- products with a weight of either layout

// What is multiplied, and what gets the product.
typedef struct tr_cuda_factors {
    const void *a, *b;
    void *c;
    tr_dtype real;   // of a and b
    tr_dtype c_real; // that, or f32
    // Elements from a row of a to the next, and of y; 0: as many as it has.
    int64_t a_row, c_row;
    bool add;         // to c
    const void *bias; // of tr__cuda_linear: as tr_cuda_product's
    bool relu;        // likewise: then what is below 0 becomes 0
    float *sums; // of tr__cuda_linear_weight: [out], gets the sums of dy's columns; or
                 // NULL
} tr_cuda_factors;

struct tr_cuda_product;
// A product with its bias, which a kernel adds where cuBLASLt does not. relu: then what
// is below 0 becomes 0, always by the kernel, which leaves NaN as it is.
void tr__cuda_multiply_biased(const tr_launch *launch,
                              const struct tr_cuda_product *product, bool relu);

// c: y [rows, out]; a: x [rows, in]; b: the weight
void tr__cuda_linear(const tr_launch *launch, const tr_linear_dims *d,
                     tr_cuda_factors f);
// c: dx [rows, in]; a: dy [rows, out]; b: the weight
void tr__cuda_linear_input(const tr_launch *launch, const tr_linear_dims *d,
                           tr_cuda_factors f);
// c: dw, as the weight is laid out; a: dy [rows, out]; b: x [rows, in]. false: f.sums
// was asked for, and cuBLASLt makes no sums beside such a product.
bool tr__cuda_linear_weight(const tr_launch *launch, const tr_linear_dims *d,
                            tr_cuda_factors f);

#endif
