#ifndef TR_OPS_NN_DEQUANTIZE_CUDA_H
#define TR_OPS_NN_DEQUANTIZE_CUDA_H

#include <stdint.h>

enum { TR_CUDA_NF4_VALUES = 16, TR_CUDA_MAP_VALUES = 256 };

// Where a tensor of few bits lies, and what its codes stand for (base/quantized.h).
typedef struct tr_cuda_few_bits {
    const unsigned char *tensor;
    int64_t scales, nested, blocks;
    int32_t kind;                     // tr_quantization
    float values[TR_CUDA_NF4_VALUES]; // of codes of 4 bits
    float map[TR_CUDA_MAP_VALUES];    // of what blocks are multiplied by, if in 8 bits
} tr_cuda_few_bits;

// `count` elements of the kind at `tensor`.
tr_cuda_few_bits tr__cuda_few_bits(int32_t kind, const void *tensor, int64_t count);

typedef struct tr_cuda_dequantize_args {
    tr_cuda_few_bits bits;
    void *out; // [count]
    int64_t count;
    int32_t real; // tr_dtype of out
    int32_t add;
} tr_cuda_dequantize_args;

#endif
