// The backward of a normalization over rows, from one reading of dy and x: dx, and the
// terms of the gradients of weight and bias, which threads keep in registers from row
// to row. A block has a part of the rows. A team of warps takes a row of these; it has
// PER vectors of the row in each thread. `mean` NULL: rows are scaled alone (rms_norm).
//
// Operands of the rows that follow are on their way into shared memory while a row is
// computed. Each thread copies what it reads itself, so that no thread waits for
// another; a row is gone through twice there: for the sums over it, and for dx.
#ifndef TR_OPS_NN_LAYER_NORM_CUDA_BOTH_H
#define TR_OPS_NN_LAYER_NORM_CUDA_BOTH_H

#include "backend/cuda/mma.cuh"
#include "backend/cuda/sums.cuh"
#include "backend/cuda/vector.cuh"
#include "ops/nn/layer_norm/cuda.h"

enum {
    TR_CUDA_BOTH_WARPS = TR_CUDA_THREADS / TR_CUDA_LANES,
    TR_CUDA_BOTH_RUN =
        TR_CUDA_LANES * TR_CUDA_VECTOR, // columns that a warp has at once
};

// What a thread sums of all its rows.
template <int PER> struct tr_cuda_both_sums {
    tr_cuda_vector<TR_CUDA_VECTOR> dweight[PER], dbias[PER];
};

// Vectors of a row that a thread has in shared memory: PER of dy, then of x, then,
// where dx is added to, of dx. Words of 16 bytes of a thread are a block's threads
// apart.
template <class T, int PER> struct tr_cuda_both_slot { uint4 *words; };

template <class T, int PER>
static __device__ inline tr_cuda_both_slot<T, PER>
tr_cuda_both_slot_of(const tr_cuda_norm_backward &n, int stage) {
    int words = (n.add_dx ? 3 : 2) * PER * (int)sizeof(T) / 2;
    return {(uint4 *)tr_cuda_shared() + stage * words * TR_CUDA_THREADS + threadIdx.x};
}

template <class T, int PER>
static __device__ inline tr_cuda_vector<TR_CUDA_VECTOR>
tr_cuda_both_get(const tr_cuda_both_slot<T, PER> &slot, int operand, int j) {
    enum { WORDS = sizeof(T) / 2 };
    tr_cuda_packed<T> packed;
    TR_CUDA_UNROLL
    for (int i = 0; i < WORDS; i++) {
        packed.words[i] =
            slot.words[((operand * PER + j) * WORDS + i) * TR_CUDA_THREADS];
    }
    return tr_cuda_unpacked(packed);
}

template <bool ALIGNED, class T, int PER>
static __device__ inline void tr_cuda_both_copy(const tr_cuda_both_slot<T, PER> &slot,
                                                int operand, int j, const T *from) {
    enum { WORDS = sizeof(T) / 2 };
    uint4 *to = slot.words + (operand * PER + j) * WORDS * TR_CUDA_THREADS;
    if constexpr (ALIGNED) {
        TR_CUDA_UNROLL
        for (int i = 0; i < WORDS; i++) {
            tr_cuda_copy16(to + i * TR_CUDA_THREADS, (const char *)from + 16 * i, true);
        }
    } else {
        enum { IN_WORD = TR_CUDA_VECTOR / WORDS };
        TR_CUDA_NO_UNROLL
        for (int k = 0; k < TR_CUDA_VECTOR; k++) {
            ((T *)(to + k / IN_WORD * TR_CUDA_THREADS))[k % IN_WORD] = from[k];
        }
    }
}

// Begins to copy a row that is there, and makes a group of it either way.
template <bool ALIGNED, class T, int PER, int TEAM>
static __device__ inline void tr_cuda_both_fetch(const tr_cuda_norm_backward &n,
                                                 int64_t row, bool there, int first,
                                                 int stage) {
    tr_cuda_both_slot<T, PER> slot = tr_cuda_both_slot_of<T, PER>(n, stage);
    int64_t begin = row * n.width;
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        int c = first + j * TEAM * TR_CUDA_BOTH_RUN;
        if (there && c < (int)n.width) {
            tr_cuda_both_copy<ALIGNED>(slot, 0, j, (const T *)n.dy + begin + c);
            tr_cuda_both_copy<ALIGNED>(slot, 1, j, (const T *)n.x + begin + c);
            if (n.add_dx) {
                tr_cuda_both_copy<ALIGNED>(slot, 2, j, (const T *)n.dx + begin + c);
            }
        }
    }
    tr_cuda_copy_group();
}

// Until all rows have come but the newest `left`.
static __device__ inline void tr_cuda_both_wait(int left) {
    if (left == 0) {
        tr_cuda_copy_wait<0>();
    } else if (left == 1) {
        tr_cuda_copy_wait<1>();
    } else {
        tr_cuda_copy_wait<TR_CUDA_BOTH_STAGES - 1>();
    }
}

// Two sums over the team of a thread. A block's threads meet once: what they read here
// is written again in the row after the next.
template <int TEAM>
static __device__ inline void tr_cuda_both_team(float *plain, float *along, int turn) {
    *plain = tr_cuda_warp_sum(*plain);
    *along = tr_cuda_warp_sum(*along);
    if constexpr (TEAM > 1) {
        __shared__ float sums[2][2][TEAM];
        int warp = threadIdx.x / TR_CUDA_LANES;
        if (threadIdx.x % TR_CUDA_LANES == 0) {
            sums[turn][0][warp] = *plain;
            sums[turn][1][warp] = *along;
        }
        __syncthreads();
        *plain = *along = 0;
        TR_CUDA_UNROLL
        for (int w = 0; w < TEAM; w++) {
            *plain += sums[turn][0][w];
            *along += sums[turn][1][w];
        }
    }
}

// A row's terms, and its two sums that dx needs.
template <bool CENTRED, bool ALIGNED, class T, int PER, int TEAM>
static __device__ inline void
tr_cuda_both_add(const tr_cuda_norm_backward &n, const tr_cuda_both_slot<T, PER> &slot,
                 int first, float mean, float rstd, tr_cuda_both_sums<PER> *of,
                 float *plain, float *along) {
    enum { N = TR_CUDA_VECTOR };
    *plain = *along = 0;
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        int c = first + j * TEAM * TR_CUDA_BOTH_RUN;
        if (c >= (int)n.width) {
            continue;
        }
        tr_cuda_vector<N> w = tr_cuda_load<N>((const T *)n.weight + c, ALIGNED);
        tr_cuda_vector<N> dy = tr_cuda_both_get(slot, 0, j);
        tr_cuda_vector<N> x = tr_cuda_both_get(slot, 1, j);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            float normal = (x.e[k] - mean) * rstd, scaled = dy.e[k] * w.e[k];
            *along = fmaf(scaled, normal, *along);
            of->dweight[j].e[k] = fmaf(dy.e[k], normal, of->dweight[j].e[k]);
            if constexpr (CENTRED) {
                *plain = fmaf(dy.e[k], w.e[k], *plain);
                of->dbias[j].e[k] += dy.e[k];
            }
        }
    }
}

// dx = rstd (dy w - mean(dy w) - xn mean(dy w xn)), xn = (x - mean) rstd
template <bool ALIGNED, class T, int PER, int TEAM>
static __device__ inline void tr_cuda_both_put(const tr_cuda_norm_backward &n,
                                               const tr_cuda_both_slot<T, PER> &slot,
                                               int64_t row, int first, float mean,
                                               float rstd, float plain, float along) {
    enum { N = TR_CUDA_VECTOR };
    T *dx = (T *)n.dx + row * n.width;
    TR_CUDA_UNROLL
    for (int j = 0; j < PER; j++) {
        int c = first + j * TEAM * TR_CUDA_BOTH_RUN;
        if (c >= (int)n.width) {
            continue;
        }
        tr_cuda_vector<N> w = tr_cuda_load<N>((const T *)n.weight + c, ALIGNED);
        tr_cuda_vector<N> dy = tr_cuda_both_get(slot, 0, j);
        tr_cuda_vector<N> x = tr_cuda_both_get(slot, 1, j), before = {};
        if (n.add_dx) {
            before = tr_cuda_both_get(slot, 2, j);
        }
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            float normal = (x.e[k] - mean) * rstd;
            float inner = fmaf(-normal, along, fmaf(dy.e[k], w.e[k], -plain));
            x.e[k] = fmaf(rstd, inner, before.e[k]);
        }
        tr_cuda_store<N>(dx + c, x, false, ALIGNED);
    }
}

// The sums of one warp's run of columns, `own` of each thread, over the block's warps,
// in their order; to sums [width], of which the run begins at column `first`. Rows are
// done with, so that their place is free.
static __device__ inline void
tr_cuda_both_join(const tr_cuda_vector<TR_CUDA_VECTOR> &own, int first, int64_t width,
                  float *sums) {
    float *all = (float *)tr_cuda_shared(); // [TR_CUDA_BOTH_WARPS, TR_CUDA_BOTH_RUN]
    int lane = threadIdx.x % TR_CUDA_LANES, warp = threadIdx.x / TR_CUDA_LANES;
    __syncthreads();
    TR_CUDA_UNROLL
    for (int k = 0; k < TR_CUDA_VECTOR; k++) {
        all[warp * TR_CUDA_BOTH_RUN + lane * TR_CUDA_VECTOR + k] = own.e[k];
    }
    __syncthreads();
    for (int c = threadIdx.x; c < TR_CUDA_BOTH_RUN; c += TR_CUDA_THREADS) {
        float sum = 0;
        for (int w = 0; w < TR_CUDA_BOTH_WARPS; w++) {
            sum += all[w * TR_CUDA_BOTH_RUN + c];
        }
        if (first + c < width) {
            sums[first + c] = sum;
        }
    }
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

// The rows of a part, from the thread's first on.
template <bool CENTRED, bool ALIGNED, class T, int PER, int TEAM>
TR_CUDA_INLINE void tr_cuda_both_rows(const tr_cuda_norm_backward &n, int64_t row,
                                      int64_t end, int first,
                                      tr_cuda_both_sums<PER> *of) {
    enum { TEAMS = TR_CUDA_BOTH_WARPS / TEAM };
    int ahead = n.stages - 1, stage = 0, turn = 0;
    for (int s = 0; s < ahead; s++) {
        int64_t next = row + s * TEAMS;
        tr_cuda_both_fetch<ALIGNED, T, PER, TEAM>(n, next, next < end, first, s);
    }
    float mean = CENTRED && row < end ? n.mean[row] : 0;
    float rstd = row < end ? n.rstd[row] : 0;
    for (; row < end; row += TEAMS) {
        int64_t next = row + TEAMS, far = row + ahead * TEAMS;
        int free = stage == 0 ? ahead : stage - 1;
        float next_mean = CENTRED && next < end ? n.mean[next] : 0;
        float next_rstd = next < end ? n.rstd[next] : 0, plain, along;
        tr_cuda_both_fetch<ALIGNED, T, PER, TEAM>(n, far, far < end, first, free);
        tr_cuda_both_wait(ahead);
        tr_cuda_both_slot<T, PER> slot = tr_cuda_both_slot_of<T, PER>(n, stage);
        tr_cuda_both_add<CENTRED, ALIGNED, T, PER, TEAM>(n, slot, first, mean, rstd, of,
                                                         &plain, &along);
        tr_cuda_both_team<TEAM>(&plain, &along, turn);
        tr_cuda_both_put<ALIGNED, T, PER, TEAM>(n, slot, row, first, mean, rstd,
                                                plain * n.inverse, along * n.inverse);
        mean = next_mean;
        rstd = next_rstd;
        stage = stage == ahead ? 0 : stage + 1;
        turn ^= 1;
    }
}

template <bool CENTRED, bool ALIGNED, class T, int PER, int TEAM>
TR_CUDA_INLINE void tr_cuda_both_part(const tr_cuda_norm_backward &n) {
    enum { THREADS = TEAM * TR_CUDA_LANES };
    int first = threadIdx.x % THREADS * TR_CUDA_VECTOR;
    int64_t row = blockIdx.x * n.part, end = row + n.part;
    end = end < n.rows ? end : n.rows;
    tr_cuda_both_sums<PER> of = {};
    tr_cuda_both_rows<CENTRED, ALIGNED, T, PER, TEAM>(n, row + threadIdx.x / THREADS,
                                                      end, first, &of);
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

// A block of TR_CUDA_THREADS for each part of the rows: a warp for each row of up to
// TR_CUDA_BOTH_WARP elements, else the block, up to TR_CUDA_BOTH_WIDEST.
template <bool CENTRED, bool ALIGNED, class T>
TR_CUDA_INLINE void tr_cuda_both_any(const tr_cuda_norm_backward &n) {
    enum { ALL = TR_CUDA_BOTH_WARPS, RUN = TR_CUDA_BOTH_RUN };
    if (n.width <= RUN) {
        tr_cuda_both_part<CENTRED, ALIGNED, T, 1, 1>(n);
    } else if (n.width <= 2 * RUN) {
        tr_cuda_both_part<CENTRED, ALIGNED, T, 2, 1>(n);
    } else if (n.width <= 3 * RUN) {
        tr_cuda_both_part<CENTRED, ALIGNED, T, 3, 1>(n);
    } else if (n.width <= TR_CUDA_BOTH_WARP) {
        tr_cuda_both_part<CENTRED, ALIGNED, T, 4, 1>(n);
    } else if (n.width <= ALL * RUN) {
        tr_cuda_both_part<CENTRED, ALIGNED, T, 1, ALL>(n);
    } else if (n.width <= 2 * ALL * RUN) {
        tr_cuda_both_part<CENTRED, ALIGNED, T, 2, ALL>(n);
    } else {
        tr_cuda_both_part<CENTRED, ALIGNED, T, 4, ALL>(n);
    }
}

template <bool CENTRED, class T>
TR_CUDA_INLINE void tr_cuda_both(const tr_cuda_norm_backward &n) {
    if (tr_cuda_is_aligned(n.dy) && tr_cuda_is_aligned(n.x) &&
        tr_cuda_is_aligned(n.weight) && tr_cuda_is_aligned(n.dx)) {
        tr_cuda_both_any<CENTRED, true, T>(n);
    } else {
        tr_cuda_both_any<CENTRED, false, T>(n);
    }
}

#endif
