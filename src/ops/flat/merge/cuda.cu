#include "ops/flat/merge/cuda.h"

#include "backend/cuda/device.cuh"
#include "ops/nn/batch_norm/statistic.h"

// A thread has an element, and adds its parts one row after the other.
template <class T> static __device__ void add_parts(const tr_cuda_merge_args &a) {
    const T *parts = (const T *)a.parts;
    T *to = (T *)a.to;
    TR_CUDA_LOOP(i, a.count) {
        T sum = a.add ? to[i] : parts[i];
        for (int64_t row = a.add ? 0 : 1; row < a.rows; row++) {
            sum += parts[row * a.width + i];
        }
        to[i] = sum;
    }
}

static __device__ void merge_statistics(const tr_cuda_merge_args &a) {
    const double *parts = (const double *)a.parts;
    double *to = (double *)a.to;
    int64_t channels = a.count / 3;
    TR_CUDA_LOOP(c, channels) {
        tr_statistic s = tr__statistic_at(a.add ? to : parts, channels, c);
        for (int64_t row = a.add ? 0 : 1; row < a.rows; row++) {
            const double *part = parts + row * a.width;
            s = tr__statistic_merge(s, tr__statistic_at(part, channels, c));
        }
        tr__statistic_put(to, channels, c, s);
    }
}

extern "C" __global__ void tr_cuda_merge(tr_cuda_merge_args a) {
    if (a.how == TR_CUDA_MERGE_STATISTICS) {
        merge_statistics(a);
    } else if (a.how == TR_CUDA_MERGE_F64) {
        add_parts<double>(a);
    } else {
        add_parts<float>(a);
    }
}
TR_CUDA_KERNEL(tr_cuda_merge);

template <class T> static __device__ void pack(const tr_cuda_pack_args &a) {
    const T *from = (const T *)a.from;
    T *to = (T *)a.to;
    TR_CUDA_LOOP(i, a.rows * a.count) {
        to[i] = from[i / a.count * a.width + i % a.count];
    }
}

extern "C" __global__ void tr_cuda_pack(tr_cuda_pack_args a) {
    if (a.bytes == 8) {
        pack<uint64_t>(a);
    } else {
        pack<uint32_t>(a);
    }
}
TR_CUDA_KERNEL(tr_cuda_pack);
