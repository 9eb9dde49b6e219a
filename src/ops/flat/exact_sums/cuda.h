#ifndef TR_OPS_FLAT_EXACT_SUMS_CUDA_H
#define TR_OPS_FLAT_EXACT_SUMS_CUDA_H

#include <stdint.h>

// So many numbers, `columns` apart, go into one sum.
typedef struct tr_cuda_run {
    int64_t first, count, sum;
} tr_cuda_run;

enum { TR_CUDA_RUNS = 64 }; // of a launch, at most

// A block has a run, and adds to its sum, to which other blocks may add as well.
typedef struct tr_cuda_exact_sums_args {
    const double *parts;
    int64_t *sums; // [TR_EXACT_WORDS] of each
    int64_t columns;
    tr_cuda_run runs[TR_CUDA_RUNS];
} tr_cuda_exact_sums_args;

// A thread has a sum, a block TR_CUDA_LANES.
typedef struct tr_cuda_exact_values_args {
    const int64_t *sums;
    double *values;
    int64_t count;
} tr_cuda_exact_values_args;

#endif
