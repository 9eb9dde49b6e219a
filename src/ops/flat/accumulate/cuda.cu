#include "ops/flat/accumulate/cuda.h"

#include "backend/cuda/device.cuh"

#define LARGEST 1.7976931348623157e308 // finite f64

// Notes that a launch has met a term that does not fit: the count, which is not below
// 0, becomes one more, with a minus, which tr_cuda_fixed_counts takes off. All threads
// that meet one write the same. The count is read once: another thread may write it
// between two reads.
static __device__ void note(double *counts, bool finite) {
    volatile double *count = &counts[finite ? 0 : 1];
    double before = *count;
    if (before >= 0) {
        *count = -(before + 1);
    }
}

// Products with a power of two are exact in f64.
extern "C" __global__ void tr_cuda_fixed(tr_cuda_fixed_args a) {
    TR_CUDA_LOOP(i, a.count) {
        double term = rint((double)a.x[i] * a.scale);
        bool fits = fabs(term) <= a.limit;
        int64_t whole = fits ? (int64_t)term : 0;
        a.sums[i] = a.add ? a.sums[i] + whole : whole;
        if (!fits && a.counts) {
            note(a.counts, fabs(term) <= LARGEST);
        }
    }
}
TR_CUDA_KERNEL(tr_cuda_fixed);

extern "C" __global__ void tr_cuda_fixed_counts(tr_cuda_fixed_args a) {
    TR_CUDA_LOOP(i, 2) {
        a.counts[i] = fabs(a.counts[i]);
    }
}
TR_CUDA_KERNEL(tr_cuda_fixed_counts);

extern "C" __global__ void tr_cuda_fixed_sums(tr_cuda_fixed_sums_args a) {
    TR_CUDA_LOOP(i, a.count) {
        a.sums[i] = a.add ? a.sums[i] + a.x[i] : a.x[i];
    }
}
TR_CUDA_KERNEL(tr_cuda_fixed_sums);
