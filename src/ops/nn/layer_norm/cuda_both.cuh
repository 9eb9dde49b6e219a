// The backward of a normalization over rows, from one reading of dy and x: dx, and the
// terms of the gradients of weight and bias, which threads keep in registers from row
// to row. A block has a part of the rows. A team of warps takes a row of these; it has
// PER vectors of the row in each thread. `mean` NULL: rows are scaled alone (rms_norm).
#ifndef TR_OPS_NN_LAYER_NORM_CUDA_BOTH_H
#define TR_OPS_NN_LAYER_NORM_CUDA_BOTH_H

#include "backend/cuda/sums.cuh"
#include "backend/cuda/vector.cuh"
#include "ops/nn/layer_norm/cuda.h"

enum {
    TR_CUDA_BOTH_WARPS = TR_CUDA_THREADS / TR_CUDA_LANES,
    TR_CUDA_BOTH_RUN =
        TR_CUDA_LANES * TR_CUDA_VECTOR, // columns that a warp has at once
};

// Sums over the team of a thread.
template <int TEAM> static __device__ inline float tr_cuda_team_sum(float x) {
    if constexpr (TEAM == 1) {
        return tr_cuda_warp_sum(x);
    } else {
        return tr_cuda_block_sum(x);
    }
}

// What a thread has of a row, and what it sums of all its rows.
template <int PER> struct tr_cuda_both_rows {
    tr_cuda_vector<TR_CUDA_VECTOR> dy[PER], x[PER], dweight[PER], dbias[PER];
};

// x becomes what it is normalized to. Returns the two means that dx needs.
template <bool CENTRED, class T, int PER, int TEAM>
static __device__ inline void
tr_cuda_both_means(const tr_cuda_norm_backward &n, int64_t row, int first,
                   tr_cuda_both_rows<PER> *of, float *plain, float *along) {
    enum { N = TR_CUDA_VECTOR, STEP = TEAM * TR_CUDA_BOTH_RUN };
    const T *weight = (const T *)n.weight;
    float mean = CENTRED ? n.mean[row] : 0, rstd = n.rstd[row];
    *plain = *along = 0;
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        int c = first + j * STEP;
        if (c >= (int)n.width) {
            continue;
        }
        tr_cuda_vector<N> w = tr_cuda_load<N>(weight + c, n.aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            float dy = of->dy[j].e[k], scaled = dy * w.e[k], x = of->x[j].e[k];
            if constexpr (CENTRED) {
                *plain += scaled;
                *along += scaled * (x - mean) * rstd;
                of->dweight[j].e[k] += dy * (x - mean) * rstd;
                of->dbias[j].e[k] += dy;
                of->x[j].e[k] = (x - mean) * rstd;
            } else {
                *along += scaled * (x * rstd);
                of->dweight[j].e[k] += dy * x * rstd;
                of->x[j].e[k] = x * rstd;
            }
            of->dy[j].e[k] = scaled;
        }
    }
    *plain = CENTRED ? tr_cuda_team_sum<TEAM>(*plain) * n.inverse : 0;
    *along = tr_cuda_team_sum<TEAM>(*along) * n.inverse;
}

// One row: `first` is the thread's first column.
template <bool CENTRED, class T, int PER, int TEAM>
static __device__ inline void tr_cuda_both_row(const tr_cuda_norm_backward &n,
                                               int64_t row, int first,
                                               tr_cuda_both_rows<PER> *of) {
    enum { N = TR_CUDA_VECTOR, STEP = TEAM * TR_CUDA_BOTH_RUN };
    const T *dy = (const T *)n.dy + row * n.width, *x = (const T *)n.x + row * n.width;
    T *dx = (T *)n.dx + row * n.width;
    float rstd = n.rstd[row], plain, along;
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        int c = first + j * STEP;
        if (c < (int)n.width) {
            of->dy[j] = tr_cuda_load<N>(dy + c, n.aligned);
            of->x[j] = tr_cuda_load<N>(x + c, n.aligned);
        }
    }
    tr_cuda_both_means<CENTRED, T, PER, TEAM>(n, row, first, of, &plain, &along);
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        int c = first + j * STEP;
        if (c >= (int)n.width) {
            continue;
        }
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            float scaled = of->dy[j].e[k], normal = of->x[j].e[k];
            of->x[j].e[k] = CENTRED ? rstd * (scaled - plain - normal * along)
                                    : (scaled - normal * along) * rstd;
        }
        tr_cuda_store<N>(dx + c, of->x[j], n.add_dx, n.aligned);
    }
}

// The sums of one warp's run of columns, `own` of each thread, over the block's warps,
// in their order; to sums [width], of which the run begins at column `first`.
static __device__ inline void
tr_cuda_both_join(const tr_cuda_vector<TR_CUDA_VECTOR> &own, int first, int64_t width,
                  float *sums) {
    __shared__ float all[TR_CUDA_BOTH_WARPS][TR_CUDA_BOTH_RUN];
    int lane = threadIdx.x % TR_CUDA_LANES, warp = threadIdx.x / TR_CUDA_LANES;
    TR_CUDA_UNROLL
    for (int k = 0; k < TR_CUDA_VECTOR; k++) {
        all[warp][lane * TR_CUDA_VECTOR + k] = own.e[k];
    }
    __syncthreads();
    for (int c = threadIdx.x; c < TR_CUDA_BOTH_RUN; c += TR_CUDA_THREADS) {
        float sum = 0;
        for (int w = 0; w < TR_CUDA_BOTH_WARPS; w++) {
            sum += all[w][c];
        }
        if (first + c < width) {
            sums[first + c] = sum;
        }
    }
    __syncthreads();
}

// What the block has summed in a run of columns, to its row of sums; NULL: nowhere.
template <int TEAM>
static __device__ inline void
tr_cuda_both_give(const tr_cuda_vector<TR_CUDA_VECTOR> &own, int run, int first,
                  int64_t width, float *sums) {
    if (!sums) {
        return;
    }
    if constexpr (TEAM == 1) {
        tr_cuda_both_join(own, run, width, sums);
    } else {
        TR_CUDA_UNROLL
        for (int k = 0; k < TR_CUDA_VECTOR; k++) {
            if (run + first < width) {
                sums[run + first + k] = own.e[k];
            }
        }
    }
}

template <bool CENTRED, class T, int PER, int TEAM>
static __device__ inline void tr_cuda_both_part(const tr_cuda_norm_backward &n) {
    enum { TEAMS = TR_CUDA_BOTH_WARPS / TEAM, THREADS = TEAM * TR_CUDA_LANES };
    int first = threadIdx.x % THREADS * TR_CUDA_VECTOR;
    int64_t row = blockIdx.x * n.part, end = row + n.part;
    end = end < n.rows ? end : n.rows;
    tr_cuda_both_rows<PER> of = {};
    for (row += threadIdx.x / THREADS; row < end; row += TEAMS) {
        tr_cuda_both_row<CENTRED, T, PER, TEAM>(n, row, first, &of);
    }
    float *dweight = n.dweight ? n.dweight + blockIdx.x * n.width : NULL;
    float *dbias = n.dbias ? n.dbias + blockIdx.x * n.width : NULL;
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        int run = j * TEAM * TR_CUDA_BOTH_RUN;
        tr_cuda_both_give<TEAM>(of.dweight[j], run, first, n.width, dweight);
        if constexpr (CENTRED) {
            tr_cuda_both_give<TEAM>(of.dbias[j], run, first, n.width, dbias);
        }
    }
}

static __device__ inline tr_cuda_norm_backward
tr_cuda_both_aligned(tr_cuda_norm_backward n) {
    n.aligned = tr_cuda_is_aligned(n.dy) && tr_cuda_is_aligned(n.x) &&
                tr_cuda_is_aligned(n.weight) && tr_cuda_is_aligned(n.dx);
    return n;
}

// A block of TR_CUDA_THREADS for each part of the rows: a warp for each row of at most
// three runs, else the block. Few vectors leave registers for two blocks at a time.
template <bool CENTRED, class T>
static __device__ inline void tr_cuda_both(const tr_cuda_norm_backward &given) {
    tr_cuda_norm_backward n = tr_cuda_both_aligned(given);
    if (n.width <= TR_CUDA_BOTH_RUN) {
        tr_cuda_both_part<CENTRED, T, 1, 1>(n);
    } else if (n.width <= 2 * TR_CUDA_BOTH_RUN) {
        tr_cuda_both_part<CENTRED, T, 2, 1>(n);
    } else if (n.width <= 3 * TR_CUDA_BOTH_RUN) {
        tr_cuda_both_part<CENTRED, T, 3, 1>(n);
    } else {
        tr_cuda_both_part<CENTRED, T, 1, TR_CUDA_BOTH_WARPS>(n);
    }
}

// Likewise of wider rows (TR_CUDA_BOTH_NARROW), up to TR_CUDA_BOTH_WIDE.
template <bool CENTRED, class T>
static __device__ inline void tr_cuda_both_wide(const tr_cuda_norm_backward &given) {
    tr_cuda_norm_backward n = tr_cuda_both_aligned(given);
    if (n.width <= 2 * TR_CUDA_BOTH_NARROW) {
        tr_cuda_both_part<CENTRED, T, 2, TR_CUDA_BOTH_WARPS>(n);
    } else {
        tr_cuda_both_part<CENTRED, T, 4, TR_CUDA_BOTH_WARPS>(n);
    }
}

#endif
