// The weights of a linear layer, out of few bits (base/quantized.h). Several tensors
// may be stacked: queries, keys and values.
#ifndef TR_OPS_NN_DEQUANTIZE_DEQUANTIZE_H
#define TR_OPS_NN_DEQUANTIZE_DEQUANTIZE_H

#include <tranche/extend/op.h>

enum { TR_DEQUANTIZE_PARTS = 8 };

typedef struct tr_dequantize_attr {
    tr_quantization kind;
    tr_dtype real; // of the weights
    int32_t parts;
    int32_t rows[TR_DEQUANTIZE_PARTS]; // [parts] of each tensor
    int32_t width;                     // of a row
} tr_dequantize_attr;

// in: the tensors, one behind the other, as words of 32 bits
// out: w [sum of rows, width], rounded once
// It has no backward: nothing trains such weights.
extern const tr_op tr__op_dequantize;

#endif
