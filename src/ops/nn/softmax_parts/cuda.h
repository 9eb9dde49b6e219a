#ifndef TR_OPS_NN_SOFTMAX_PARTS_CUDA_H
#define TR_OPS_NN_SOFTMAX_PARTS_CUDA_H

#include <stdint.h>

// running, drunning: [rows, 2]; best: [rows, 2]; parts, dparts: [rows, ranks, 5].
// Where one is NULL it is not wanted.
typedef struct tr_cuda_softmax_parts_args {
    int64_t rows, ranks, rank;
    const double *running_in, *drunning_in;
    const float *best_in, *parts_in, *dparts_in;
    double *running, *drunning;
    float *best, *parts, *dparts;
    int32_t add, add_best; // to the result, to best
} tr_cuda_softmax_parts_args;

#endif
