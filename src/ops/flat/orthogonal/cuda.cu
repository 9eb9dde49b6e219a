#include "ops/flat/orthogonal/cuda.h"

#include "backend/cuda/real.cuh"
#include "backend/cuda/sums.cuh"

template <class T> static __device__ void read(const tr_cuda_newton_read_args &a) {
    T *y = (T *)a.y;
    double sum = 0;
    TR_CUDA_LOOP(i, a.rows * a.columns) {
        int64_t from = a.turns ? i % a.rows * a.columns + i / a.rows : i;
        float value = tr_cuda_round<T>(a.x[from]);
        tr_cuda_set(&y[i], value);
        sum += (double)value * value;
    }
    sum = tr_cuda_block_sum(sum);
    if (threadIdx.x == 0) {
        a.parts[blockIdx.x] = sum;
    }
}

extern "C" __global__ void tr_cuda_newton_read(tr_cuda_newton_read_args a) {
    TR_CUDA_BY_REAL(a.real, read, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_newton_read);

template <class T> static __device__ void scale(const tr_cuda_newton_scale_args &a) {
    T *x = (T *)a.x;
    double sum = 0;
    for (int64_t part = threadIdx.x; part < a.part_count; part += TR_CUDA_THREADS) {
        sum += a.parts[part];
    }
    float norm = tr_cuda_round<T>((float)sqrt(tr_cuda_block_sum(sum)));
    norm = norm > a.eps ? norm : a.eps;
    TR_CUDA_LOOP(i, a.count) {
        tr_cuda_set(&x[i], tr_cuda_get(x[i]) / norm);
    }
}

extern "C" __global__ void tr_cuda_newton_scale(tr_cuda_newton_scale_args a) {
    TR_CUDA_BY_REAL(a.real, scale, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_newton_scale);

template <class T>
static __device__ void combine(const tr_cuda_newton_combine_args &a) {
    const T *of = (const T *)a.of;
    T *to = (T *)a.to;
    TR_CUDA_LOOP(i, a.count) {
        float value = a.q * a.product[i];
        tr_cuda_set(&to[i], a.p != 0 ? a.p * tr_cuda_get(of[i]) + value : value);
    }
}

extern "C" __global__ void tr_cuda_newton_combine(tr_cuda_newton_combine_args a) {
    TR_CUDA_BY_REAL(a.real, combine, a);
}
TR_CUDA_KERNEL(tr_cuda_newton_combine);

template <class T>
static __device__ void add_identity(const tr_cuda_newton_identity_args &a) {
    T *x = (T *)a.x;
    TR_CUDA_LOOP(i, a.side) {
        tr_cuda_give(&x[i * a.side + i], a.times, true);
    }
}

extern "C" __global__ void tr_cuda_newton_identity(tr_cuda_newton_identity_args a) {
    TR_CUDA_BY_REAL(a.real, add_identity, a);
}
TR_CUDA_KERNEL(tr_cuda_newton_identity);

// Where element `i` of a part is in the whole.
static __device__ int64_t place_of(const tr_stride &lies, int64_t i) {
    int64_t one = 1;
    return tr__stride_at(&lies, i, &one);
}

extern "C" __global__ void tr_cuda_put_part(tr_cuda_put_part_args a) {
    TR_CUDA_LOOP(i, a.count) {
        a.y[place_of(a.lies, i)] = a.x[i];
    }
}
TR_CUDA_KERNEL(tr_cuda_put_part);

template <class T> static __device__ void update(const tr_cuda_orthogonal_args &a) {
    const T *o = (const T *)a.o;
    TR_CUDA_LOOP(i, a.count) {
        int64_t at = place_of(a.lies, a.first + i);
        int64_t row = at / a.columns, column = at % a.columns;
        float value = tr_cuda_get(o[a.turned ? column * a.rows + row : at]);
        a.param[i] = a.keep * a.param[i] - a.step * value;
    }
}

extern "C" __global__ void tr_cuda_orthogonal(tr_cuda_orthogonal_args a) {
    TR_CUDA_BY_REAL(a.real, update, a);
}
TR_CUDA_KERNEL(tr_cuda_orthogonal);
