#ifndef TR_OPS_FLAT_MERGE_CUDA_H
#define TR_OPS_FLAT_MERGE_CUDA_H

#include <stdint.h>

// How the rows' parts of a tensor become one.
enum { TR_CUDA_MERGE_F32, TR_CUDA_MERGE_F64, TR_CUDA_MERGE_STATISTICS };

typedef struct tr_cuda_merge_args {
    const void *parts; // [rows, width], from the part of the first row on
    void *to;          // [count]
    int64_t rows, width, count;
    int32_t how, add;
} tr_cuda_merge_args;

// Elements [row * width, row * width + count) of each row.
typedef struct tr_cuda_pack_args {
    const void *from; // from the first one on
    void *to;         // [rows, count]
    int64_t rows, width, count;
    int32_t bytes; // of an element: 4 or 8
} tr_cuda_pack_args;

#endif
