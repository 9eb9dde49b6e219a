#ifndef TR_OPS_FLAT_UPDATE_CUDA_PART_H
#define TR_OPS_FLAT_UPDATE_CUDA_PART_H

#include <stdint.h>

// The parts in which a range is measured (ops/optimizers/optimizer_measure.h); a block
// has one.
typedef struct tr_cuda_parts {
    int64_t before;  // elements of the first part that lie before the range
    int64_t count;   // elements of the range
    double *squares; // [2] of each part: those of parameters and of the direction
} tr_cuda_parts;

// What the kernels of an optimizer are told of the norms that its rate follows.
typedef struct tr_cuda_norms {
    // The update: on the device, the sums of squares of the range's tensor and of its
    // direction. NULL: the rate follows none.
    const double *squares;
    tr_cuda_parts parts; // the first phase: what it measures
} tr_cuda_norms;

#define TR_CUDA_PART 1024 // TR_NORM_BLOCK

#endif
