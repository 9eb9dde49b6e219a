// Normalizations of rows that threads have in their registers, as memory has them, from
// the first load to the last store: each byte is read once, and all loads of a row are
// on their way together. A row of up to TR_CUDA_ROW_BYTES for each lane is one
// warp's, a wider one the whole block's.
//
// Which products a sum takes unrounded is said (fmaf, tr_cuda_product): compilers would
// choose, and rows that are read in another way would have other bits.
#ifndef TR_OPS_NN_LAYER_NORM_CUDA_ROWS_H
#define TR_OPS_NN_LAYER_NORM_CUDA_ROWS_H

#include "backend/cuda/vector.cuh"
#include "ops/nn/dropout/cuda_element.cuh"
#include "ops/nn/layer_norm/cuda.h"

// A thread's row, its first element and how far the next of its vectors is.
typedef struct tr_cuda_row_place {
    int64_t row;
    int first, step;
} tr_cuda_row_place;

// A block's threads have a row, or each of its warps.
template <bool BLOCK> static __device__ inline tr_cuda_row_place tr_cuda_row_of() {
    int thread = threadIdx.x, threads = BLOCK ? (int)blockDim.x : TR_CUDA_LANES;
    int64_t rows = blockDim.x / threads;
    return {blockIdx.x * rows + thread / threads, thread % threads * TR_CUDA_VECTOR,
            threads * TR_CUDA_VECTOR};
}

// The sum over the threads of a row.
template <bool BLOCK> static __device__ inline float tr_cuda_row_sum(float x) {
    x = tr_cuda_warp_sum(x);
    if constexpr (BLOCK) {
        __shared__ float sums[TR_CUDA_ROW_WARPS];
        int warps = blockDim.x / TR_CUDA_LANES;
        if (threadIdx.x % TR_CUDA_LANES == 0) {
            sums[threadIdx.x / TR_CUDA_LANES] = x;
        }
        __syncthreads();
        x = 0;
        for (int warp = 0; warp < warps; warp++) {
            x += sums[warp];
        }
        __syncthreads();
    }
    return x;
}

// Vector j of PER of a row, at its element c, is there: lanes of a warp lack the last
// at the most, as PER follows from the width (tr_cuda_norm_narrow).
template <bool BLOCK, int PER>
static __device__ inline bool tr_cuda_row_has(const tr_cuda_norm &n, int j, int c) {
    return (!BLOCK && j < PER - 1) || c < (int)n.width;
}

// A row of `from`, as it is kept. No branch is between the loads, so that they are on
// their way together.
template <bool BLOCK, int PER, class T>
static __device__ inline void tr_cuda_row_get(const tr_cuda_norm &n,
                                              const tr_cuda_row_place &at,
                                              const void *from, tr_cuda_packed<T> *x) {
    const T *row = (const T *)from + at.row * n.width;
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        int c = at.first + j * at.step;
        if (tr_cuda_row_has<BLOCK, PER>(n, j, c)) {
            x[j] = tr_cuda_load_eight(row + c);
        }
    }
}

// x[j] = the sum as it is kept, r + dropout(x), which is stored where it is wanted.
template <bool BLOCK, int PER, class T>
static __device__ inline void tr_cuda_row_join(const tr_cuda_norm &n,
                                               const tr_cuda_row_place &at,
                                               tr_cuda_packed<T> *x) {
    enum { N = TR_CUDA_VECTOR };
    tr_cuda_packed<T> r[PER];
    int64_t begin = at.row * n.width;
    tr_cuda_row_get<BLOCK, PER>(n, at, n.r, r);
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        int c = at.first + j * at.step;
        if (!tr_cuda_row_has<BLOCK, PER>(n, j, c)) {
            continue;
        }
        tr_cuda_vector<N> sum = tr_cuda_unpacked(r[j]), add = tr_cuda_unpacked(x[j]);
        tr_cuda_vector<N> by = tr_cuda_multipliers<N>(n.dropout, begin + c);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            sum.e[k] = fmaf(add.e[k], by.e[k], sum.e[k]);
        }
        x[j] = tr_cuda_pack_vector<T>(sum);
        if (n.sum) {
            tr_cuda_store<N>((T *)n.sum + begin + c, tr_cuda_unpacked(x[j]), n.add_sum,
                             true);
        }
    }
}

// The mean over the columns that there are; f(sum, x) adds what x has part in it.
template <bool BLOCK, int PER, class T, class F>
static __device__ inline float
tr_cuda_row_mean(const tr_cuda_norm &n, const tr_cuda_row_place &at,
                 const tr_cuda_packed<T> *x, const F &f) {
    float sum = 0;
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        if (tr_cuda_row_has<BLOCK, PER>(n, j, at.first + j * at.step)) {
            tr_cuda_vector<TR_CUDA_VECTOR> v = tr_cuda_unpacked(x[j]);
            TR_CUDA_UNROLL
            for (int k = 0; k < TR_CUDA_VECTOR; k++) {
                sum = f(sum, v.e[k]);
            }
        }
    }
    return tr_cuda_row_sum<BLOCK>(sum) * n.inverse;
}

// y = (x - mean) rstd weight + bias; CENTRED: there is a mean, and a bias.
template <bool CENTRED, bool BLOCK, int PER, class T>
static __device__ inline void
tr_cuda_row_put(const tr_cuda_norm &n, const tr_cuda_row_place &at,
                const tr_cuda_packed<T> *x, float mean, float rstd) {
    enum { N = TR_CUDA_VECTOR };
    const T *weight = (const T *)n.weight, *bias = (const T *)n.bias;
    T *y = (T *)n.y + at.row * n.width;
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        int c = at.first + j * at.step;
        if (!tr_cuda_row_has<BLOCK, PER>(n, j, c)) {
            continue;
        }
        tr_cuda_vector<N> v = tr_cuda_unpacked(x[j]), b = {};
        tr_cuda_vector<N> w = tr_cuda_load<N>(weight + c, true);
        if constexpr (CENTRED) {
            b = tr_cuda_load<N>(bias + c, true);
        }
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            v.e[k] = CENTRED ? fmaf((v.e[k] - mean) * rstd, w.e[k], b.e[k])
                             : tr_cuda_product(v.e[k] * rstd, w.e[k]);
        }
        tr_cuda_store<N>(y + c, v, n.add_y, true);
    }
}

static __device__ inline bool tr_cuda_row_aligned(const tr_cuda_norm &n) {
    return tr_cuda_is_aligned(n.r) && tr_cuda_is_aligned(n.x) &&
           tr_cuda_is_aligned(n.weight) && tr_cuda_is_aligned(n.bias) &&
           tr_cuda_is_aligned(n.sum) && tr_cuda_is_aligned(n.y);
}

// What a kernel does with a row: scale it (rms_norm), normalize it, or normalize the
// sum of two.
enum { TR_CUDA_ROW_SCALED, TR_CUDA_ROW_CENTRED, TR_CUDA_ROW_JOINED };

// What is normalized of element i.
template <int WHAT, class T>
static __device__ inline float tr_cuda_row_summand(const tr_cuda_norm &n, int64_t i) {
    float x = tr_cuda_get(((const T *)n.x)[i]);
    if constexpr (WHAT == TR_CUDA_ROW_JOINED) {
        float r = tr_cuda_get(((const T *)n.r)[i]);
        x = tr_cuda_round<T>(fmaf(x, tr_cuda_multiplier(n.dropout, i), r));
    }
    return x;
}

// f(c) for a thread's columns c of its row, in the order of its vectors.
template <class F>
static __device__ inline void
tr_cuda_row_each(const tr_cuda_norm &n, const tr_cuda_row_place &at, const F &f) {
    TR_CUDA_NO_UNROLL
    for (int64_t v = at.first; v < n.width; v += at.step) {
        TR_CUDA_NO_UNROLL
        for (int k = 0; k < n.vector; k++) {
            f(v + k);
        }
    }
}

template <int WHAT, class T>
static __device__ inline void tr_cuda_row_put_one(const tr_cuda_norm &n, int64_t row,
                                                  int64_t c, float mean, float rstd) {
    int64_t i = row * n.width + c;
    float x = tr_cuda_row_summand<WHAT, T>(n, i);
    float w = tr_cuda_get(((const T *)n.weight)[c]);
    if (n.sum) {
        tr_cuda_give((T *)n.sum + i, x, n.add_sum);
    }
    if (!n.y) {
        return;
    }
    if constexpr (WHAT == TR_CUDA_ROW_SCALED) {
        tr_cuda_give((T *)n.y + i, tr_cuda_product(x * rstd, w), n.add_y);
    } else {
        float b = tr_cuda_get(((const T *)n.bias)[c]);
        tr_cuda_give((T *)n.y + i, fmaf((x - mean) * rstd, w, b), n.add_y);
    }
}

static __device__ inline void tr_cuda_row_give(const tr_cuda_norm &n,
                                               const tr_cuda_row_place &at, float mean,
                                               float rstd) {
    if (at.first == 0 && n.mean) {
        tr_cuda_put(&n.mean[at.row], mean, n.add_mean);
    }
    if (at.first == 0 && n.rstd) {
        tr_cuda_put(&n.rstd[at.row], rstd, n.add_rstd);
    }
}

// Rows of whole vectors, of which a thread has PER at the most.
template <int WHAT, bool BLOCK, int PER, class T>
static __device__ inline void tr_cuda_row_norm(const tr_cuda_norm &n) {
    enum { CENTRED = WHAT != TR_CUDA_ROW_SCALED };
    tr_cuda_row_place at = tr_cuda_row_of<BLOCK>();
    if (at.row >= n.rows) {
        return; // a warp's: no other waits for it
    }
    tr_cuda_packed<T> x[PER];
    tr_cuda_row_get<BLOCK, PER>(n, at, n.x, x);
    if constexpr (WHAT == TR_CUDA_ROW_JOINED) {
        tr_cuda_row_join<BLOCK, PER>(n, at, x);
    }
    float mean = 0;
    if constexpr (CENTRED) {
        mean = tr_cuda_row_mean<BLOCK, PER>(n, at, x,
                                            [](float sum, float e) { return sum + e; });
    }
    float square = tr_cuda_row_mean<BLOCK, PER>(
        n, at, x, [=](float sum, float e) { return fmaf(e - mean, e - mean, sum); });
    float rstd = 1 / sqrtf(square + n.epsilon);
    if (n.y) {
        tr_cuda_row_put<CENTRED, BLOCK, PER>(n, at, x, mean, rstd);
    }
    tr_cuda_row_give(n, at, mean, rstd);
}

// Rows of any width, of operands that begin anywhere, element by element, which are
// read three times. The order of the sums is that of whole vectors.
template <int WHAT, bool BLOCK, class T>
static __device__ inline void tr_cuda_row_slow(const tr_cuda_norm &n) {
    tr_cuda_row_place at = tr_cuda_row_of<BLOCK>();
    if (at.row >= n.rows) {
        return;
    }
    at.first = at.first / TR_CUDA_VECTOR * n.vector;
    at.step = at.step / TR_CUDA_VECTOR * n.vector;
    float mean = 0, square = 0;
    int64_t begin = at.row * n.width;
    if constexpr (WHAT != TR_CUDA_ROW_SCALED) {
        tr_cuda_row_each(n, at, [&](int64_t c) {
            mean += tr_cuda_row_summand<WHAT, T>(n, begin + c);
        });
        mean = tr_cuda_row_sum<BLOCK>(mean) * n.inverse;
    }
    tr_cuda_row_each(n, at, [&](int64_t c) {
        float x = tr_cuda_row_summand<WHAT, T>(n, begin + c) - mean;
        square = fmaf(x, x, square);
    });
    square = tr_cuda_row_sum<BLOCK>(square) * n.inverse;
    float rstd = 1 / sqrtf(square + n.epsilon);
    tr_cuda_row_each(n, at, [&](int64_t c) {
        tr_cuda_row_put_one<WHAT, T>(n, at.row, c, mean, rstd);
    });
    tr_cuda_row_give(n, at, mean, rstd);
}

// Rows of warps: as many vectors of a thread as there have to be.
template <int WHAT, class T>
static __device__ inline void tr_cuda_norm_narrow(const tr_cuda_norm &n) {
    enum { RUN = TR_CUDA_LANES * TR_CUDA_VECTOR };
    if (n.vector != TR_CUDA_VECTOR || !tr_cuda_row_aligned(n)) {
        tr_cuda_row_slow<WHAT, false, T>(n);
    } else if (n.width <= RUN) {
        tr_cuda_row_norm<WHAT, false, 1, T>(n);
    } else if (sizeof(T) == 4 || n.width <= 2 * RUN) {
        tr_cuda_row_norm<WHAT, false, 2, T>(n);
    } else if (n.width <= 3 * RUN) {
        tr_cuda_row_norm<WHAT, false, 3, T>(n);
    } else {
        tr_cuda_row_norm<WHAT, false, 4, T>(n);
    }
}

// Rows of blocks.
template <int WHAT, class T>
static __device__ inline void tr_cuda_norm_wide(const tr_cuda_norm &n) {
    enum { PER = TR_CUDA_ROW_BYTES / sizeof(T) / TR_CUDA_VECTOR };
    if (tr_cuda_row_aligned(n)) {
        tr_cuda_row_norm<WHAT, true, PER, T>(n);
    } else {
        tr_cuda_row_slow<WHAT, true, T>(n);
    }
}

#endif
