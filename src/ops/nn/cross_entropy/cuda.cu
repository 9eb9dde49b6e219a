#include "ops/nn/cross_entropy/cuda.h"

#include "ops/nn/linear_cross_entropy/cuda_classes.cuh"

// A row, its target, and what is wanted of it (row.h): `hit` at the target, and `all`
// times its weight at each class.
template <class T> struct labelled_row {
    const T *x, *weight;
    int64_t classes;
    int32_t target;
    double hit, all, count;
    tr_cuda_row_softmax s;
};

template <class T>
static __device__ double weight_of(const labelled_row<T> &row, int64_t c) {
    return row.weight ? tr_cuda_get(row.weight[c]) : 1;
}

// The sum over all classes of what is wanted of each, times f(c).
template <class T, class F>
static __device__ double sum_smooth(const labelled_row<T> &row, const F &f) {
    double sum = 0;
    for (int64_t c = threadIdx.x; row.all > 0 && c < row.classes;
         c += TR_CUDA_THREADS) {
        sum += row.all * weight_of(row, c) * f(c);
    }
    return tr_cuda_block_sum(sum);
}

template <class T>
static __device__ void put_gradients(const tr_cuda_class_loss_args &a,
                                     const labelled_row<T> &row, bool there, T *dx) {
    double seed = a.seeds ? a.seeds[blockIdx.x] : a.seed;
    double total = row.hit + sum_smooth(row, [](int64_t) { return 1.0; });
    for (int64_t c = threadIdx.x; dx && c < row.classes; c += TR_CUDA_THREADS) {
        double slope = 0;
        if (there) {
            double x = tr_cuda_get(row.x[c]);
            slope = total * exp(x - row.s.top) / row.s.sum;
            slope -= row.all > 0 ? row.all * weight_of(row, c) : 0;
            slope -= c == row.target ? row.hit : 0;
            slope *= seed;
        }
        double before = a.add ? tr_cuda_get(dx[c]) : 0;
        tr_cuda_set(&dx[c], (float)(before + slope));
    }
}

template <class T> static __device__ void compare(const tr_cuda_class_loss_args &a) {
    labelled_row<T> row = {};
    row.x = (const T *)a.x + blockIdx.x * a.classes;
    row.weight = (const T *)a.weight;
    row.classes = a.classes;
    row.target = a.targets[blockIdx.x];
    row.s = tr_cuda_classes_read(row.x, a.classes);
    bool there = row.target >= 0;
    if (there) {
        row.count = weight_of(row, row.target);
        row.hit = (1 - (double)a.smoothing) * row.count;
        row.all = (double)a.smoothing / (double)a.classes;
    }
    double normal = row.s.top + log(row.s.sum);
    double smooth = sum_smooth(
        row, [&](int64_t c) { return normal - (double)tr_cuda_get(row.x[c]); });
    double at = there ? tr_cuda_get(row.x[row.target]) : 0;
    T *dx = (T *)a.dx;
    put_gradients(a, row, there, dx ? dx + blockIdx.x * a.classes : dx);
    if (threadIdx.x == 0) {
        tr_cuda_row_sums own = {0, 0, 0};
        if (there) {
            own = {row.hit * (normal - at) + smooth, row.count,
                   row.s.place == row.target ? 1.0 : 0.0};
        }
        if (a.each) {
            a.each[blockIdx.x] = own;
        }
        if (a.losses) {
            a.losses[blockIdx.x] = (float)own.loss;
        }
    }
}

extern "C" __global__ void tr_cuda_class_loss(tr_cuda_class_loss_args a) {
    TR_CUDA_BY_REAL(a.real, compare, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_class_loss);
