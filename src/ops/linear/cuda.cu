#include "ops/linear/cuda.h"

#include "backend/cuda/device.cuh"

enum { LANES = 32, DEEP = 8 }; // columns of a block; threads that sum one

static __global__ void bias_rows(float *y, const float *bias, int64_t count,
                                 int64_t width, bool relu) {
    TR_CUDA_LOOP(i, count) {
        float value = bias ? y[i] + bias[i % width] : y[i];
        y[i] = relu && value < 0 ? 0 : value;
    }
}

static __global__ void column_sums(const float *x, int64_t rows, int64_t width,
                                   float *to, bool add) {
    __shared__ float sums[DEEP][LANES];
    int64_t c = blockIdx.x * (int64_t)LANES + threadIdx.x;
    float sum = 0;
    for (int64_t row = threadIdx.y; c < width && row < rows; row += DEEP) {
        sum += x[row * width + c];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && c < width) {
        for (int deep = 1; deep < DEEP; deep++) {
            sum += sums[deep][threadIdx.x];
        }
        tr_cuda_put(&to[c], sum, add);
    }
}

void tr_cuda_bias(float *y, const float *bias, int64_t rows, int64_t width, bool relu,
                  void *stream) {
    TR_CUDA_EACH(bias_rows, rows * width, stream, y, bias, rows * width, width, relu);
}

void tr_cuda_column_sums(const float *x, int64_t rows, int64_t width, float *sum,
                         bool add, void *stream) {
    dim3 blocks((unsigned)((width + LANES - 1) / LANES));
    TR_CUDA_BLOCKS(column_sums, blocks, dim3(LANES, DEEP), stream, x, rows, width, sum,
                   add);
}
