// Tiles of rows in shared memory, and products with them.
//
// A warp's result is [16, 8 N], as N fragments of 16 x 8 (backend/cuda/mma.cuh). bf16
// and f16 go through tensor cores. f32 is multiplied and added as f32, with the same
// elements in the same lanes.
#ifndef TR_OPS_ATTENTION_CUDA_TILE_H
#define TR_OPS_ATTENTION_CUDA_TILE_H

#include "ops/attention/cuda.h"

#include "backend/cuda/mma.cuh"

enum { TR_LANES = TR_CUDA_LANES, TR_ROWS = TR_CUDA_ATTEND_ROWS, TR_QUAD = 4 };

// Elements of 16 bytes.
template <class T> constexpr int tr_chunk = 16 / (int)sizeof(T);

// Rows of a tile that a block goes through.
template <class T, int PIECE>
constexpr int tr_tile_rows = TR_CUDA_TILE_BYTES / (PIECE * (int)sizeof(T));

static __device__ inline int tr_lane() {
    return threadIdx.x % TR_LANES;
}

// The first of the 16 rows of this warp.
static __device__ inline int tr_warp_row() {
    return threadIdx.x / TR_LANES * 16;
}

// Where 16 bytes of a row are. Each row has its own order of them, so that those of
// eight rows lie in different banks.
template <class T, int PIECE>
static __device__ inline T *tr_chunk_at(T *tile, int row, int chunk) {
    return tile + row * PIECE + (chunk ^ (row & 7)) * tr_chunk<T>;
}

// What a block copies from memory: rows that are `pitch` elements apart, of which so
// many rows and columns are there. The others are 0.
template <class T> struct tr_source {
    const T *first;
    int64_t pitch;
    int rows, columns;
    bool whole; // rows begin at multiples of 16 bytes
};

template <class T>
static __device__ inline void tr_fetch_chunk(T *to, const tr_source<T> &from, int row,
                                             int column) {
    bool there = row < from.rows && column < from.columns;
    const T *at = from.first + (there ? row * from.pitch + column : 0);
    if (from.whole) {
        tr_cuda_copy16(to, at, there);
        return;
    }
    for (int i = 0; i < tr_chunk<T>; i++) {
        bool one = there && column + i < from.columns;
        tr_cuda_set(&to[i], one ? tr_cuda_get(at[i]) : 0);
    }
}

// The whole block begins to copy a tile.
template <class T, int PIECE, int ROWS>
static __device__ inline void tr_fetch_tile(T *tile, const tr_source<T> &from) {
    constexpr int across = PIECE / tr_chunk<T>;
    for (int i = threadIdx.x; i < ROWS * across; i += TR_CUDA_ATTEND_THREADS) {
        int row = i / across, chunk = i % across;
        tr_fetch_chunk(tr_chunk_at<T, PIECE>(tile, row, chunk), from, row,
                       chunk * tr_chunk<T>);
    }
}

// Elements side by side, which are loaded and stored together.
template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) tr_side_by_side {
    T e[COUNT];
};

typedef tr_side_by_side<float, 4> tr_four;
typedef tr_side_by_side<float, 2> tr_two;

static __device__ inline tr_four tr_load_four(const float *chunk) {
    return *(const tr_four *)(const void *)chunk;
}

// c [16, 8 N] += a b': the warp's 16 rows of tile a from row `first`, and the 8 N rows
// of tile b.
template <class T, int PIECE, int N>
static __device__ inline void tr_multiply_rows(float (&c)[N][4], T *a, int first,
                                               T *b) {
    int lane = tr_lane();
    if constexpr (sizeof(T) == sizeof(float)) {
        int row = first + lane / TR_QUAD, column = lane % TR_QUAD * 2;
        for (int k = 0; k < PIECE / 4; k++) {
            tr_four up = tr_load_four(tr_chunk_at<T, PIECE>(a, row, k));
            tr_four down = tr_load_four(tr_chunk_at<T, PIECE>(a, row + 8, k));
            TR_CUDA_UNROLL
            for (int n = 0; n < N; n++) {
                tr_four x = tr_load_four(tr_chunk_at<T, PIECE>(b, 8 * n + column, k));
                tr_four y =
                    tr_load_four(tr_chunk_at<T, PIECE>(b, 8 * n + column + 1, k));
                TR_CUDA_UNROLL
                for (int i = 0; i < 4; i++) {
                    c[n][0] += up.e[i] * x.e[i];
                    c[n][1] += up.e[i] * y.e[i];
                    c[n][2] += down.e[i] * x.e[i];
                    c[n][3] += down.e[i] * y.e[i];
                }
            }
        }
    } else {
        TR_CUDA_UNROLL
        for (int k = 0; k < PIECE / 16; k++) {
            uint32_t of_a[4], of_b[4];
            tr_cuda_load_matrices(
                of_a, tr_chunk_at<T, PIECE>(a, first + lane % 16, 2 * k + lane / 16));
            TR_CUDA_UNROLL
            for (int n = 0; n < N; n += 2) {
                int row = 8 * n + lane % 8 + lane / 16 * 8;
                tr_cuda_load_matrices(
                    of_b, tr_chunk_at<T, PIECE>(b, row, 2 * k + lane / 8 % 2));
                tr_cuda_mma(c[n], of_a, of_b, T());
                tr_cuda_mma(c[n + 1], of_a, of_b + 2, T());
            }
        }
    }
}

// c [16, PIECE] += a b: a [16, 8 N] of this warp, rounded to T, and the 8 N rows of
// tile b.
template <class T, int PIECE, int N>
static __device__ inline void tr_multiply_columns(float (&c)[PIECE / 8][4],
                                                  const float (&a)[N][4], T *b) {
    int lane = tr_lane();
    if constexpr (sizeof(T) == sizeof(float)) {
        TR_CUDA_UNROLL
        for (int k = 0; k < 8 * N; k++) {
            int from = lane / TR_QUAD * TR_QUAD + k % 8 / 2;
            float up = __shfl_sync(TR_CUDA_WARP, a[k / 8][k % 2], from);
            float down = __shfl_sync(TR_CUDA_WARP, a[k / 8][2 + k % 2], from);
            TR_CUDA_UNROLL
            for (int n = 0; n < PIECE / 8; n++) {
                const T *at = tr_chunk_at<T, PIECE>(b, k, 2 * n + lane % TR_QUAD / 2);
                tr_two x = *(const tr_two *)(const void *)(at + lane % 2 * 2);
                c[n][0] += up * x.e[0];
                c[n][1] += up * x.e[1];
                c[n][2] += down * x.e[0];
                c[n][3] += down * x.e[1];
            }
        }
    } else {
        TR_CUDA_UNROLL
        for (int k = 0; k < N / 2; k++) {
            uint32_t of_b[4];
            uint32_t of_a[4] = {tr_cuda_pack(a[2 * k][0], a[2 * k][1], T()),
                                tr_cuda_pack(a[2 * k][2], a[2 * k][3], T()),
                                tr_cuda_pack(a[2 * k + 1][0], a[2 * k + 1][1], T()),
                                tr_cuda_pack(a[2 * k + 1][2], a[2 * k + 1][3], T())};
            TR_CUDA_UNROLL
            for (int n = 0; n < PIECE / 8; n += 2) {
                tr_cuda_load_transposed(
                    of_b, tr_chunk_at<T, PIECE>(b, 16 * k + lane % 16, n + lane / 16));
                tr_cuda_mma(c[n], of_a, of_b, T());
                tr_cuda_mma(c[n + 1], of_a, of_b + 2, T());
            }
        }
    }
}

template <int N> static __device__ inline void tr_clear(float (&c)[N][4]) {
    TR_CUDA_UNROLL
    for (int n = 0; n < N; n++) {
        c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
    }
}

// Where a warp's result goes, as tr_source says it of the block's rows.
template <class T> struct tr_destination {
    T *first;
    int64_t pitch;
    int rows, columns;
    bool whole, add;
};

template <class T>
static __device__ inline void tr_put_two(const tr_destination<T> &to, int row,
                                         int column, float x, float y) {
    T *at = to.first + row * to.pitch + column;
    if (row >= to.rows || column >= to.columns) {
        return;
    }
    if (to.whole) { // an even number of columns
        typedef tr_side_by_side<T, 2> two;
        two both = to.add ? *(two *)(void *)at : two();
        tr_cuda_give(&both.e[0], x, to.add);
        tr_cuda_give(&both.e[1], y, to.add);
        *(two *)(void *)at = both;
        return;
    }
    tr_cuda_give(at, x, to.add);
    if (column + 1 < to.columns) {
        tr_cuda_give(at + 1, y, to.add);
    }
}

// Writes, or adds, c; the rows l / 4 and l / 4 + 8 times up and down.
template <class T, int N>
static __device__ inline void tr_put(const tr_destination<T> &to,
                                     const float (&c)[N][4], float up, float down) {
    int row = tr_warp_row() + tr_lane() / TR_QUAD, column = tr_lane() % TR_QUAD * 2;
    TR_CUDA_UNROLL
    for (int n = 0; n < N; n++) {
        tr_put_two(to, row, 8 * n + column, c[n][0] * up, c[n][1] * up);
        tr_put_two(to, row + 8, 8 * n + column, c[n][2] * down, c[n][3] * down);
    }
}

// Of a stage's number, by so many pieces: mostly one, and a division takes as long as a
// few exponentials.
static __device__ inline int tr_quotient(int stage, int pieces) {
    return pieces == 1 ? stage : stage / pieces;
}

static __device__ inline int tr_remainder(int stage, int pieces) {
    return pieces == 1 ? 0 : stage % pieces;
}

// A block's work in stages: fetch(i) begins the copies of stage i, compute(i) uses
// them. `ahead`: the copies of a stage go on beside the stage before, into other
// memory, which is that of the stage before this one.
template <class FETCH, class COMPUTE>
static __device__ inline void tr_stages(int count, bool ahead, const FETCH &fetch,
                                        const COMPUTE &compute) {
    if (count > 0) {
        fetch(0);
    }
    for (int i = 0; i < count; i++) {
        tr_cuda_copy_group();
        tr_cuda_copy_wait<0>();
        __syncthreads(); // stage i is there, and all threads are done with stage i - 1
        if (ahead && i + 1 < count) {
            fetch(i + 1);
        }
        compute(i);
        if (!ahead && i + 1 < count) {
            __syncthreads();
            fetch(i + 1);
        }
    }
}

#endif
