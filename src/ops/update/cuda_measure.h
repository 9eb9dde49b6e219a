// For the first phase of optimizers whose rate follows the norms of tensors.
#ifndef TR_OPS_UPDATE_CUDA_MEASURE_H
#define TR_OPS_UPDATE_CUDA_MEASURE_H

#include "backend/cuda/grid.h"
#include "ops/optimizer_measure.h"
#include "ops/update/cuda_part.h"

// The parts of a range that begins at element `first` of its flat buffer. squares: of
// the first part.
tr_cuda_parts tr__cuda_parts(const tr_update *update, int64_t first, double *squares);
// A block for each part.
tr_cuda_grid tr__cuda_part_grid(const tr_cuda_parts *parts);

#endif
