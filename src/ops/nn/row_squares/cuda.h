#ifndef TR_OPS_NN_ROW_SQUARES_CUDA_H
#define TR_OPS_NN_ROW_SQUARES_CUDA_H

#include "ops/nn/dequantize/cuda.h"

#include <stdint.h>

// A block has one row.
typedef struct tr_cuda_row_squares_args {
    const void *w, *a, *b; // [all, in] (or [in, all]), [rank, in], [rows, rank]
    const float *kept;     // [rows]: what `out` is, found before; NULL: not yet
    float *out;            // [rows]
    int64_t first, in, rank, all;
    float scale;
    int32_t in_out, real, add;
    tr_cuda_few_bits bits; // what the weight is; of kind TR_QUANTIZED_NOT: it is w
} tr_cuda_row_squares_args;

#endif
