// The copy as other ops launch it.
#ifndef TR_OPS_FLAT_COPY_CUDA_COPY_H
#define TR_OPS_FLAT_COPY_CUDA_COPY_H

#include "backend/cuda/kernels.h"
#include "ops/flat/copy/cuda.h"

extern tr_cuda_function tr__cuda_function_copy;

static inline void tr__cuda_copy(const tr_launch *launch, tr_cuda_copy_args args) {
    tr__cuda_launch(launch, &tr__cuda_function_copy, tr__cuda_vectors(args.count),
                    &args, sizeof args);
}

#endif
