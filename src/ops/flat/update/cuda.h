#ifndef TR_OPS_FLAT_UPDATE_CUDA_H
#define TR_OPS_FLAT_UPDATE_CUDA_H

#include <stdint.h>

// So many parts, one after the other, belong to a tensor.
typedef struct tr_cuda_run {
    int64_t first, count, tensor;
} tr_cuda_run;

enum { TR_CUDA_RUNS = 64 }; // of a launch, at most

// A block has a run, and adds its parts to the tensor's squares. Of each tensor, a
// launch has one run.
typedef struct tr_cuda_tensor_squares_args {
    const double *parts; // [2] of each
    double *tensors;     // [2] of each
    tr_cuda_run runs[TR_CUDA_RUNS];
} tr_cuda_tensor_squares_args;

#endif
