#include "ops/nn/linear/cuda.h"

#include "backend/cuda/sums.cuh"
#include "backend/cuda/vector.cuh"

enum { LANES = TR_CUDA_LANES, DEEP = TR_CUDA_COLUMN_THREADS };

template <class T, class B, int N>
static __device__ void add_bias(const tr_cuda_bias_args &a) {
    const B *bias = (const B *)a.bias;
    T *y = (T *)a.y;
    int64_t across = a.width / N;
    bool aligned =
        tr_cuda_is_aligned(y) && tr_cuda_is_aligned(bias) && a.pitch % N == 0;
    TR_CUDA_LOOP(v, a.count / N) {
        int64_t at = v / across * a.pitch + v % across * N;
        tr_cuda_vector<N> value = tr_cuda_load<N>(y + at, aligned), by = {};
        if (bias) {
            by = tr_cuda_load<N>(bias + v % across * N, aligned);
        }
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            value.e[k] += by.e[k];
            value.e[k] = a.relu && value.e[k] < 0 ? 0 : value.e[k];
        }
        tr_cuda_store<N>(y + at, value, false, aligned);
    }
}

template <class B, int N> static __device__ void add_to(const tr_cuda_bias_args &a) {
    if (a.y_real == TR_F32) {
        add_bias<float, B, N>(a);
    } else {
        add_bias<B, B, N>(a);
    }
}

template <class B> static __device__ void bias_of(const tr_cuda_bias_args &a) {
    TR_CUDA_BY_WIDTH(B, a.width, add_to, a);
}

extern "C" __global__ void tr_cuda_bias(tr_cuda_bias_args a) {
    TR_CUDA_BY_REAL(a.real, bias_of, a);
}
TR_CUDA_KERNEL(tr_cuda_bias);

// Of the grid tr__cuda_vector_columns. blockIdx: columns, part of the rows
template <class T, int N>
static __device__ void column_sums(const tr_cuda_column_sums_args &a) {
    const T *x = (const T *)a.x;
    int64_t c = (blockIdx.x * (int64_t)LANES + threadIdx.x) * N;
    int64_t first = blockIdx.y * a.part;
    int64_t end = first + a.part < a.rows ? first + a.part : a.rows;
    bool aligned = tr_cuda_is_aligned(x) && a.pitch % N == 0;
    tr_cuda_vector<N> sum = {};
    // Rows that are loaded before the first is added: else too few bytes are under way.
    enum { ROWS = 4 };
    for (int64_t row = first + threadIdx.y; c < a.width && row < end;
         row += ROWS * DEEP) {
        tr_cuda_vector<N> v[ROWS] = {};
        TR_CUDA_UNROLL
        for (int r = 0; r < ROWS; r++) {
            if (row + r * DEEP < end) {
                v[r] = tr_cuda_load<N>(x + (row + r * DEEP) * a.pitch + c, aligned);
            }
        }
        TR_CUDA_UNROLL
        for (int r = 0; r < ROWS; r++) {
            TR_CUDA_UNROLL
            for (int k = 0; k < N; k++) {
                sum.e[k] += v[r].e[k];
            }
        }
    }
    float all = tr_cuda_columns_sum<N>(sum.e);
    if (threadIdx.y < N && c < a.width) {
        tr_cuda_put(&a.sums[blockIdx.y * a.width + c + threadIdx.y], all, a.add);
    }
}

template <class T>
static __device__ void sum_columns(const tr_cuda_column_sums_args &a) {
    TR_CUDA_BY_WIDTH(T, a.width, column_sums, a);
}

extern "C" __global__ void tr_cuda_column_sums(tr_cuda_column_sums_args a) {
    TR_CUDA_BY_REAL(a.real, sum_columns, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_column_sums);
