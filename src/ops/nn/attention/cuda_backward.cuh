// Attention's backward (Dao, FlashAttention-2, arXiv 2307.08691, sec. 3.1), once with
// queries as the rows of a block, once with keys: so each gradient is summed by one
// block, in one order, and nothing is added up in memory. Both make the scores again.
//
// A block goes through the tiles of the columns. Its four warps have 16 or 32 rows
// each, as many as they have registers for. Rows and columns have two tiles each, which
// are multiplied: q and dy of queries, k and v of keys.
//
// Estimated, not measured, for bf16 on an H200. At depth 64 the two passes together are
// 896 products of tensor cores for each 64 rows by 64 columns, some 1430 clocks, and
// 160 KiB to and from shared memory, 1280 clocks: at most 420 TFLOP/s of the five
// products that are counted, and 250 are likely. At depth 128 they read 288 KiB for
// each 64 by 32, 2304 clocks: at most 260, and 150 are likely. Two blocks of 255
// registers a thread, 64 KiB of shared memory each, share a multiprocessor.
#ifndef TR_OPS_ATTENTION_CUDA_BACKWARD_H
#define TR_OPS_ATTENTION_CUDA_BACKWARD_H

#include "ops/nn/attention/cuda_pairs.cuh"

// A pair's probability p times its multiplier; and p (m dy v - dy y), which is what the
// score's gradient is. lse is to base 2; the score of a pair that does not count is
// -infinity.
struct tr_pair {
    float kept, through;
};

static __device__ inline tr_pair tr_pair_of(const tr_cuda_attention &a, float score,
                                            float dp, float lse, float delta,
                                            float multiplier) {
    tr_pair g;
    float p = tr_cuda_exp2(score * (a.scale * TR_LOG2_E) - lse);
    g.kept = p * multiplier;
    g.through = p * (multiplier * dp - delta);
    return g;
}

// What both have: stages, tiles and products.
//
// TILES: of 16 rows of a warp. PART: columns whose scores a warp has at a time. There
// is one part where a head may be taken in pieces, because scores wait for all of them.
template <class T, int PIECE, int TILES> struct tr_backward {
    enum { COLUMNS = tr_tile_rows<T, PIECE>, PART = 32, N = PART / 8, M = PIECE / 8 };
    enum { WARP_ROWS = 16 * TILES, ROWS = TR_CUDA_ATTEND_ROWS * TILES, R = 2 * TILES };
    static_assert(COLUMNS % PART == 0, "a tile has whole parts");
    static_assert(COLUMNS == PART || tr_one_piece<T, PIECE>, "scores of all pieces");

    const tr_cuda_attend_backward_args &args;
    const tr_cuda_attention &a;
    int pieces, piece; // of the depth, and which of them this block gives
    int first;         // row

    float s[TILES][N][4], dp[TILES][N][4]; // rows by columns: q k', dy v'
    uint32_t keeps;                        // by dropout: of each pair of a part a bit
    static_assert(TILES * N * 4 <= 32, "a part has a bit for each pair");

    __device__ tr_backward(const tr_cuda_attend_backward_args &args_)
        : args(args_), a(args_.of) {
        pieces = tr_pieces<T, PIECE>(a);
        piece = blockIdx.y % pieces;
    }

    // Of this lane's R, within the block.
    static __device__ int row(int r) {
        return tr_warp_row<TILES>() + tr_lane() / TR_QUAD + 8 * r;
    }

    // Of element i of fragment n, within the part.
    static __device__ int column(int n, int i) {
        return 8 * n + tr_lane() % TR_QUAD * 2 + i % 2;
    }

    // Tile 0 is of q or k, tile 1 of dy or v.
    static __device__ T *rows(int tile) {
        return (T *)tr_cuda_shared() + tile * ROWS * PIECE;
    }

    static __device__ T *columns(int stage, int tile) {
        return rows(2) + (stage % 2 * 2 + tile) * COLUMNS * PIECE;
    }

    // Behind the tiles: of each column, three numbers.
    static __device__ float *numbers(int stage, int which) {
        return (float *)(void *)columns(0, 4) + (stage % 2 * 3 + which) * COLUMNS;
    }

    // The last stage of a tile has the block's own piece.
    __device__ int piece_of(int stage) const {
        return tr_remainder(piece + 1 + stage, pieces) * PIECE;
    }

    __device__ bool is_last(int stage) const {
        return tr_remainder(stage + 1, pieces) == 0;
    }

    __device__ bool needs_rows(int stage) const {
        return stage == 0 || pieces > 1;
    }

    // The rows of a part of the columns, from column `from` of the tile on.
    static __device__ T *part(int stage, int tile, int from) {
        return columns(stage, tile) + from * PIECE;
    }

    // What a pair's probability is multiplied with.
    template <bool DROPS> __device__ float multiplier(int n, int i) const {
        return DROPS ? tr_multiplier(a, keeps, i / 4 * 4 * N + 4 * n + i % 4) : 1;
    }

    __device__ void multiply(int stage, int from) {
        int row = tr_warp_row<TILES>();
        if (tr_remainder(stage, pieces) == 0) {
            tr_clear(s);
            tr_clear(dp);
        }
        tr_multiply_rows<T, PIECE>(s, rows(0), row, part(stage, 0, from));
        tr_multiply_rows<T, PIECE>(dp, rows(1), row, part(stage, 1, from));
    }
};

template <class WORK>
static __device__ inline void tr_run(const tr_cuda_attend_backward_args &args) {
    WORK w(args);
    tr_stages(
        w.stages(), w.pieces == 1, [&](int stage) { w.fetch(stage); },
        [&](int stage) { w.compute(stage); });
    w.finish();
}

// The kernel `name` of WORK<T, PIECE, TILES>.
#define TR_ATTEND_ENTRY(name, WORK, T, PIECE, TILES)                                   \
    extern "C" __global__ void __launch_bounds__(TR_CUDA_ATTEND_THREADS, 2)            \
        name(tr_cuda_attend_backward_args args) {                                      \
        tr_run<WORK<T, PIECE, TILES>>(args);                                           \
    }

#endif
