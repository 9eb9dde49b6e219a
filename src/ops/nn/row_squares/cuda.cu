#include "ops/nn/row_squares/cuda.h"

#include "backend/cuda/sums.cuh"
#include "ops/nn/dequantize/cuda_value.cuh"

// Element i of row `row` of the weight, as products have it.
template <class T>
static __device__ float element(const tr_cuda_row_squares_args &a, int64_t row,
                                int64_t i) {
    const T *w = (const T *)a.w;
    if (a.bits.kind != TR_QUANTIZED_NOT) {
        T rounded;
        tr_cuda_set(&rounded, tr_cuda_few_bits_value(a.bits, row * a.in + i));
        return tr_cuda_get(rounded);
    }
    row += a.first;
    return tr_cuda_get(w[a.in_out ? i * a.all + row : row * a.in + i]);
}

template <class T> static __device__ void add_up(const tr_cuda_row_squares_args &a) {
    const T *down = (const T *)a.a, *up = (const T *)a.b;
    int64_t row = blockIdx.x;
    float squares = 0;
    for (int64_t i = threadIdx.x; !a.kept && i < a.in; i += TR_CUDA_THREADS) {
        float sum = 0;
        for (int64_t k = 0; k < a.rank; k++) {
            sum += tr_cuda_get(up[row * a.rank + k]) * tr_cuda_get(down[k * a.in + i]);
        }
        sum = element<T>(a, row, i) + a.scale * sum;
        squares += sum * sum;
    }
    squares = tr_cuda_block_sum(squares);
    if (threadIdx.x == 0) {
        tr_cuda_put(&a.out[row], a.kept ? a.kept[row] : squares, a.add);
    }
}

extern "C" __global__ void tr_cuda_row_squares(tr_cuda_row_squares_args a) {
    TR_CUDA_BY_REAL(a.real, add_up, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_row_squares);
