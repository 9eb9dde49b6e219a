// Tiles of rows in shared memory, and products with them.
//
// A warp's result is [16 TILES, 8 N], as fragments of 16 x 8 (backend/cuda/mma.cuh).
// bf16 and f16 go through tensor cores, and mostly with two tiles: what is loaded from
// shared memory then serves two products, and shared memory keeps up with tensor cores.
// f32 is multiplied and added as f32, with the same elements in the same lanes.
#ifndef TR_OPS_ATTENTION_CUDA_TILE_H
#define TR_OPS_ATTENTION_CUDA_TILE_H

#include "ops/nn/attention/cuda.h"

#include "backend/cuda/mma.cuh"

enum { TR_LANES = TR_CUDA_LANES, TR_QUAD = 4 };

// Elements of 16 bytes.
template <class T> constexpr int tr_chunk = 16 / (int)sizeof(T);

// Rows of a tile that a block goes through.
template <class T, int PIECE>
constexpr int tr_tile_rows = TR_CUDA_TILE_BYTES / (PIECE * (int)sizeof(T));

static __device__ inline int tr_lane() {
    return threadIdx.x % TR_LANES;
}

// The first of the rows of this warp.
template <int TILES> static __device__ inline int tr_warp_row() {
    return threadIdx.x / TR_LANES * 16 * TILES;
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

// Element by element: what is not whole cannot be copied beside the threads.
template <class T>
static __device__ inline void tr_fetch_chunk(T *to, const tr_source<T> &from, int row,
                                             int column) {
    for (int i = 0; i < tr_chunk<T>; i++) {
        bool there = row < from.rows && column + i < from.columns;
        int64_t at = row * from.pitch + column + i;
        tr_cuda_set(&to[i], there ? tr_cuda_get(from.first[at]) : 0);
    }
}

// The whole block begins to copy a tile. A thread has one column of chunks, and every
// eighth row or so, whose order of chunks is the same.
template <class T, int PIECE, int ROWS>
static __device__ inline void tr_fetch_tile(T *tile, const tr_source<T> &from) {
    constexpr int across = PIECE / tr_chunk<T>, down = TR_CUDA_ATTEND_THREADS / across;
    static_assert(down % 8 == 0, "rows of a thread have one order");
    int thread = tr_cuda_thread(), row = thread / across, chunk = thread % across;
    int column = chunk * tr_chunk<T>;
    T *to = tr_chunk_at<T, PIECE>(tile, row, chunk);
    if (!from.whole) {
        TR_CUDA_NO_UNROLL
        for (int i = 0; i < ROWS; i += down) {
            tr_fetch_chunk(to + i * PIECE, from, row + i, column);
        }
        return;
    }
    int rows = column < from.columns ? from.rows - row : 0;
    int64_t at = row * from.pitch + column;
    TR_CUDA_NO_UNROLL
    for (int i = 0; i < ROWS; i += down) {
        tr_cuda_copy16(to + i * PIECE, from.first + (i < rows ? at : 0), i < rows);
        at += down * from.pitch;
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

// Of the warp's rows of tile a from row `first` on, the columns of step k.
template <class T, int PIECE, int TILES>
static __device__ inline void tr_load_rows(uint32_t (&of_a)[TILES][4], T *a, int first,
                                           int k) {
    TR_CUDA_UNROLL
    for (int t = 0; t < TILES; t++) {
        int row = first + 16 * t + tr_lane() % 16;
        tr_cuda_load_matrices(of_a[t],
                              tr_chunk_at<T, PIECE>(a, row, 2 * k + tr_lane() / 16));
    }
}

// c += a b' of the columns of step k.
template <class T, int PIECE, int TILES, int N>
static __device__ inline void tr_multiply_step(float (&c)[TILES][N][4],
                                               const uint32_t (&of_a)[TILES][4], T *b,
                                               int k) {
    int lane = tr_lane();
    TR_CUDA_UNROLL
    for (int n = 0; n < N; n += 2) {
        uint32_t of_b[4];
        int row = 8 * n + lane % 8 + lane / 16 * 8;
        tr_cuda_load_matrices(of_b,
                              tr_chunk_at<T, PIECE>(b, row, 2 * k + lane / 8 % 2));
        TR_CUDA_UNROLL
        for (int t = 0; t < TILES; t++) {
            tr_cuda_mma(c[t][n], of_a[t], of_b, T());
            tr_cuda_mma(c[t][n + 1], of_a[t], of_b + 2, T());
        }
    }
}

// Two fragments side by side, rounded to T, as the left factor of a product.
template <class T>
static __device__ inline void tr_pack_rows(uint32_t (&to)[4], const float (&left)[4],
                                           const float (&right)[4]) {
    to[0] = tr_cuda_pack(left[0], left[1], T());
    to[1] = tr_cuda_pack(left[2], left[3], T());
    to[2] = tr_cuda_pack(right[0], right[1], T());
    to[3] = tr_cuda_pack(right[2], right[3], T());
}

// c [16 TILES, 8 N] += a b': the warp's rows of tile a from row `first`, and 8 N rows
// of tile b. Each fragment of b is loaded once for all tiles of c.
template <class T, int PIECE, int TILES, int N>
static __device__ inline void tr_multiply_rows(float (&c)[TILES][N][4], T *a, int first,
                                               T *b) {
    int lane = tr_lane();
    if constexpr (sizeof(T) == sizeof(float)) {
        static_assert(TILES == 1, "f32 has one tile");
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
                    c[0][n][0] += up.e[i] * x.e[i];
                    c[0][n][1] += up.e[i] * y.e[i];
                    c[0][n][2] += down.e[i] * x.e[i];
                    c[0][n][3] += down.e[i] * y.e[i];
                }
            }
        }
    } else {
        TR_CUDA_UNROLL
        for (int k = 0; k < PIECE / 16; k++) {
            uint32_t of_a[TILES][4];
            tr_load_rows<T, PIECE>(of_a, a, first, k);
            tr_multiply_step<T, PIECE>(c, of_a, b, k);
        }
    }
}

// c [16 TILES, PIECE] += a b: a [16 TILES, 8 N] of this warp, rounded to T, and 8 N
// rows of tile b.
template <class T, int PIECE, int TILES, int N>
static __device__ inline void tr_multiply_columns(float (&c)[TILES][PIECE / 8][4],
                                                  const float (&a)[TILES][N][4], T *b) {
    int lane = tr_lane();
    if constexpr (sizeof(T) == sizeof(float)) {
        static_assert(TILES == 1, "f32 has one tile");
        TR_CUDA_UNROLL
        for (int k = 0; k < 8 * N; k++) {
            int from = lane / TR_QUAD * TR_QUAD + k % 8 / 2;
            float up = __shfl_sync(TR_CUDA_WARP, a[0][k / 8][k % 2], from);
            float down = __shfl_sync(TR_CUDA_WARP, a[0][k / 8][2 + k % 2], from);
            TR_CUDA_UNROLL
            for (int n = 0; n < PIECE / 8; n++) {
                const T *at = tr_chunk_at<T, PIECE>(b, k, 2 * n + lane % TR_QUAD / 2);
                tr_two x = *(const tr_two *)(const void *)(at + lane % 2 * 2);
                c[0][n][0] += up * x.e[0];
                c[0][n][1] += up * x.e[1];
                c[0][n][2] += down * x.e[0];
                c[0][n][3] += down * x.e[1];
            }
        }
    } else {
        TR_CUDA_UNROLL
        for (int k = 0; k < N / 2; k++) {
            uint32_t of_a[TILES][4];
            TR_CUDA_UNROLL
            for (int t = 0; t < TILES; t++) {
                tr_pack_rows<T>(of_a[t], a[t][2 * k], a[t][2 * k + 1]);
            }
            TR_CUDA_UNROLL
            for (int n = 0; n < PIECE / 8; n += 2) {
                uint32_t of_b[4];
                tr_cuda_load_transposed(
                    of_b, tr_chunk_at<T, PIECE>(b, 16 * k + lane % 16, n + lane / 16));
                TR_CUDA_UNROLL
                for (int t = 0; t < TILES; t++) {
                    tr_cuda_mma(c[t][n], of_a[t], of_b, T());
                    tr_cuda_mma(c[t][n + 1], of_a[t], of_b + 2, T());
                }
            }
        }
    }
}

template <int TILES, int N>
static __device__ inline void tr_clear(float (&c)[TILES][N][4]) {
    TR_CUDA_UNROLL
    for (int i = 0; i < TILES * N * 4; i++) {
        c[i / 4 / N][i / 4 % N][i % 4] = 0;
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

// Writes, or adds, c; row 8 r + l / 4 of the warp times `factors` r.
template <class T, int TILES, int N>
static __device__ inline void tr_put(const tr_destination<T> &to,
                                     const float (&c)[TILES][N][4],
                                     const float (&factors)[2 * TILES]) {
    int column = tr_lane() % TR_QUAD * 2;
    TR_CUDA_UNROLL
    for (int r = 0; r < 2 * TILES; r++) {
        int row = tr_warp_row<TILES>() + tr_lane() / TR_QUAD + 8 * r;
        TR_CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            const float *two = &c[r / 2][n][r % 2 * 2];
            tr_put_two(to, row, 8 * n + column, two[0] * factors[r],
                       two[1] * factors[r]);
        }
    }
}

// The same factor for all rows.
template <class T, int TILES, int N>
static __device__ inline void tr_put_scaled(const tr_destination<T> &to,
                                            const float (&c)[TILES][N][4],
                                            float factor) {
    float factors[2 * TILES];
    TR_CUDA_UNROLL
    for (int r = 0; r < 2 * TILES; r++) {
        factors[r] = factor;
    }
    tr_put(to, c, factors);
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
