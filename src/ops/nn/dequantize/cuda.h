#ifndef TR_OPS_NN_DEQUANTIZE_CUDA_H
#define TR_OPS_NN_DEQUANTIZE_CUDA_H

#include <stdint.h>

enum { TR_CUDA_NF4_VALUES = 16, TR_CUDA_MAP_VALUES = 256 };

// One tensor (base/quantized.h).
typedef struct tr_cuda_dequantize_args {
    const unsigned char *tensor;
    void *out; // [count]
    int64_t count, scales, nested, blocks;
    int32_t kind; // tr_quantization
    int32_t real; // tr_dtype of out
    int32_t add;
    float values[TR_CUDA_NF4_VALUES]; // of codes of 4 bits
    float map[TR_CUDA_MAP_VALUES];    // of what blocks are multiplied by, if in 8 bits
} tr_cuda_dequantize_args;

#endif
