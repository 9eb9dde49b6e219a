// Attention's forward (Dao, FlashAttention-2, arXiv 2307.08691, sec. 3.1): a block has
// queries of a head, 16 or 32 for each of its four warps, and goes through the tiles of
// keys that they see; their scores, probabilities and sums never leave a warp's
// registers.
//
// Estimated, not measured, for bf16 on an H200, with 32 queries a warp: at depth 128,
// 64 queries by 32 keys are 256 products of tensor cores, some 410 clocks, and 56 KiB
// to and from shared memory, 448 clocks, so at most 540 TFLOP/s; with 64 KiB of shared
// memory and 255 registers a thread, two blocks share a multiprocessor, and 300 are
// likely. At depth 64, 64 by 64 are as many products, 48 KiB and 384 clocks; its powers
// take 256 of them elsewhere, and 250 are likely.
#include "ops/nn/attention/cuda_pairs.cuh"

namespace {
template <class T, int PIECE, int TILES> struct forward {
    enum { KEYS = tr_tile_rows<T, PIECE>, N = KEYS / 8, M = PIECE / 8 };
    enum { WARP_ROWS = 16 * TILES, ROWS = TR_CUDA_ATTEND_ROWS * TILES, R = 2 * TILES };

    const tr_cuda_attend_args &args;
    const tr_cuda_attention &a;
    tr_head h;
    int pieces, piece; // of the depth, and which of them this block gives
    int part, first;   // of the tiles of keys; query
    int tile, end;     // the first tile of keys; positions that have keys
    int latest;        // of all queries' oldest keys

    // Of its queries: the highest score so far, to base 2, and the sum of powers,
    // of this lane's keys alone.
    float top[R], total[R];
    float s[TILES][N][4], sum[TILES][M][4];

    __device__ forward(const tr_cuda_attend_args &args_) : args(args_), a(args_.of) {
        pieces = tr_pieces<T, PIECE>(a);
        piece = blockIdx.y % pieces;
        h = tr_head_of(a, blockIdx.z, blockIdx.y / pieces);
        bool cut = args.parts > 1;
        part = cut ? blockIdx.x : 0;
        first = cut ? 0 : (int)(gridDim.x - 1 - blockIdx.x) * ROWS; // long ones first
        int last = (first + ROWS < a.queries ? first + ROWS : a.queries) - 1;
        tile = tr_oldest(a, h.positions, first) / KEYS + part * args.tiles;
        latest = tr_oldest(a, h.positions, first + ROWS - 1);
        end = tr_key_end(a, h.positions, last);
        if (cut && (tile + args.tiles) * KEYS < end) {
            end = (tile + args.tiles) * KEYS;
        }
        TR_CUDA_UNROLL
        for (int r = 0; r < R; r++) {
            top[r] = -INFINITY;
            total[r] = 0;
        }
        tr_clear(sum);
    }

    // Of this lane's R, within the block.
    static __device__ int row(int r) {
        return tr_warp_row<TILES>() + tr_lane() / TR_QUAD + 8 * r;
    }

    __device__ int stages() const {
        int tiles = (end + KEYS - 1) / KEYS - tile;
        return tiles > 0 ? tiles * pieces : 0; // the last part may be left without
    }

    static __device__ T *queries() {
        return (T *)tr_cuda_shared();
    }

    static __device__ T *keys(int stage) {
        return queries() + (ROWS + stage % 2 * 2 * KEYS) * PIECE;
    }

    static __device__ T *values(int stage) {
        return keys(stage) + KEYS * PIECE;
    }

    // The last stage of a tile has the block's own piece.
    __device__ bool is_last(int stage) const {
        return tr_remainder(stage + 1, pieces) == 0;
    }

    __device__ int key(int stage) const {
        return (tile + tr_quotient(stage, pieces)) * KEYS;
    }

    // Those of a tile of keys from position k on.
    __device__ tr_source<T> shared_rows(const tr_cuda_rows &rows, int k,
                                        int column) const {
        return tr_rows_at<T>(a, rows, h.sample, h.head / a.group, k % a.room, end - k,
                             column);
    }

    __device__ void fetch(int stage) const {
        int of = tr_remainder(piece + 1 + stage, pieces) * PIECE, k = key(stage);
        if (stage == 0 || pieces > 1) {
            tr_fetch_tile<T, PIECE, ROWS>(
                queries(),
                tr_rows_at<T>(a, a.q, h.sample, h.head, first, a.queries - first, of));
        }
        tr_fetch_tile<T, PIECE, KEYS>(keys(stage), shared_rows(a.k, k, of));
        if (is_last(stage)) {
            tr_fetch_tile<T, PIECE, KEYS>(values(stage), shared_rows(a.v, k, of));
        }
    }

    // Do all queries of this warp see all keys of the tile from key k on?
    __device__ bool all_see(int k) const {
        int last = k + KEYS - 1;
        return a.both ? !h.positions && last < a.queries
                      : k >= latest &&
                            last <= tr_position(a, first + tr_warp_row<TILES>());
    }

    // The scores of keys that a query does not see.
    __device__ void mask(int k) {
        if (all_see(k)) {
            return;
        }
        int thread = tr_cuda_thread(), lane = thread % TR_LANES;
        int row = first + thread / TR_LANES * WARP_ROWS + lane / TR_QUAD;
        TR_CUDA_UNROLL
        for (int r = 0; r < R; r++) {
            int query = row + 8 * r, newest = tr_key_end(a, h.positions, query) - 1;
            int oldest = tr_oldest(a, h.positions, query);
            TR_CUDA_UNROLL
            for (int i = 0; i < 2 * N; i++) {
                int at = k + i / 2 * 8 + lane % TR_QUAD * 2 + i % 2;
                float *score = &s[r / 2][i / 2][r % 2 * 2 + i % 2];
                *score = at >= oldest && at <= newest ? *score : -INFINITY;
            }
        }
    }

    // Over the lanes that share a query.
    static __device__ float highest(float x) {
        x = fmaxf(x, __shfl_xor_sync(TR_CUDA_WARP, x, 1));
        return fmaxf(x, __shfl_xor_sync(TR_CUDA_WARP, x, 2));
    }

    static __device__ float together(float x) {
        x += __shfl_xor_sync(TR_CUDA_WARP, x, 1);
        return x + __shfl_xor_sync(TR_CUDA_WARP, x, 2);
    }

    // Of query r: the scores become powers of 2, below 1, and what was summed before
    // is scaled as they are.
    template <int r> __device__ void take(float scale) {
        constexpr int t = r / 2, one = r % 2 * 2;
        float high = top[r];
        TR_CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            high = fmaxf(high, fmaxf(s[t][n][one], s[t][n][one + 1]) * scale);
        }
        high = highest(high);
        float base = high == -INFINITY ? 0 : high; // it has seen no key
        float shrink = tr_cuda_exp2(top[r] - base);
        total[r] *= shrink;
        top[r] = high;
        TR_CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            TR_CUDA_UNROLL
            for (int i = one; i < one + 2; i++) {
                s[t][n][i] = tr_cuda_exp2(s[t][n][i] * scale - base);
                total[r] += s[t][n][i];
            }
        }
        TR_CUDA_UNROLL
        for (int m = 0; m < M; m++) {
            sum[t][m][one] *= shrink;
            sum[t][m][one + 1] *= shrink;
        }
    }

    // All rows' from r on.
    template <int r> __device__ void take_from(float scale) {
        take<r>(scale);
        if constexpr (r + 1 < R) {
            take_from<r + 1>(scale);
        }
    }

    __device__ void drop(int k) {
        TR_CUDA_UNROLL
        for (int i = 0; i < TILES * N / 2; i++) { // two fragments
            int t = i / (N / 2), n = i % (N / 2) * 2;
            int query = first + tr_warp_row<TILES>() + 16 * t;
            uint32_t keeps = tr_keeps_by_queries(a, h, query, k + 8 * n);
            TR_CUDA_UNROLL
            for (int e = 0; e < 8; e++) {
                s[t][n + e / 4][e % 4] *= tr_multiplier(a, keeps, e);
            }
        }
    }

    // Does a query of this warp see a key of the tile from key k on?
    __device__ bool any_sees(int k) const {
        int query = first + tr_warp_row<TILES>();
        return query < a.queries &&
               (a.both || k <= tr_position(a, query + WARP_ROWS - 1)) &&
               k + KEYS > tr_oldest(a, h.positions, query);
    }

    __device__ void compute(int stage) {
        if (!any_sees(key(stage))) {
            return;
        }
        if (tr_remainder(stage, pieces) == 0) {
            tr_clear(s);
        }
        tr_multiply_rows<T, PIECE>(s, queries(), tr_warp_row<TILES>(), keys(stage));
        if (is_last(stage)) {
            float scale = a.scale * TR_LOG2_E;
            mask(key(stage));
            take_from<0>(scale);
            if (a.dropout > 0) {
                drop(key(stage));
            }
            tr_multiply_columns<T, PIECE>(sum, s, values(stage));
        }
    }

    // What this part of the keys gives, for tr_cuda_attend_join.
    __device__ void finish_part(const float (&all)[R]) const {
        int64_t rows = ((h.sample * a.heads + h.head) * args.parts + part) * a.queries;
        tr_destination<float> to;
        to.first = args.sums + rows * a.depth + piece * PIECE;
        to.pitch = a.depth;
        to.rows = a.queries;
        to.columns = a.depth - piece * PIECE;
        to.whole = a.whole;
        to.add = false;
        tr_put_scaled(to, sum, 1);
        for (int r = 0; piece == 0 && r < R; r++) {
            if (tr_lane() % TR_QUAD == 0 && row(r) < a.queries) {
                args.tops[2 * (rows + row(r))] = top[r];
                args.tops[2 * (rows + row(r)) + 1] = all[r];
            }
        }
    }

    __device__ void finish() const {
        float all[R], inverse[R];
        for (int r = 0; r < R; r++) {
            all[r] = together(total[r]);
            inverse[r] = 1 / all[r];
        }
        if (args.parts > 1) {
            finish_part(all);
            return;
        }
        tr_put(tr_rows_to<T>(a, args.y, (void *)args.y.first, h.sample, h.head, first,
                             piece * PIECE, args.add_y),
               sum, inverse);
        for (int r = 0; args.lse && piece == 0 && r < R; r++) {
            if (tr_lane() % TR_QUAD == 0 && first + row(r) < a.queries) {
                float *to = args.lse + (h.sample * a.heads + h.head) * a.queries;
                tr_cuda_put(to + first + row(r),
                            top[r] * 0.693147180559945309f + logf(all[r]),
                            args.add_lse);
            }
        }
    }
};

template <class T, int PIECE, int TILES>
__device__ void attend(const tr_cuda_attend_args &args) {
    forward<T, PIECE, TILES> f(args);
    tr_stages(
        f.stages(), f.pieces == 1, [&](int stage) { f.fetch(stage); },
        [&](int stage) { f.compute(stage); });
    f.finish();
}
} // namespace

#define ENTRY(name, T, PIECE, TILES)                                                   \
    extern "C" __global__ void __launch_bounds__(TR_CUDA_ATTEND_THREADS, 2)            \
        name(tr_cuda_attend_args args) {                                               \
        attend<T, PIECE, TILES>(args);                                                 \
    }

// blockIdx: queries of a block, or a part of the keys; head and piece of the depth;
// sample
ENTRY(tr_cuda_attend_f32, float, 64, 1)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_f32);
ENTRY(tr_cuda_attend_bf16_64, tr_cuda_bf16, 64, TR_CUDA_ATTEND_FORWARD_64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_bf16_64);
ENTRY(tr_cuda_attend_bf16_128, tr_cuda_bf16, 128, TR_CUDA_ATTEND_FORWARD_128)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_bf16_128);
ENTRY(tr_cuda_attend_f16_64, tr_cuda_f16, 64, TR_CUDA_ATTEND_FORWARD_64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_f16_64);
ENTRY(tr_cuda_attend_f16_128, tr_cuda_f16, 128, TR_CUDA_ATTEND_FORWARD_128)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_f16_128);

// Where no second tile has queries.
ENTRY(tr_cuda_attend_few_bf16_64, tr_cuda_bf16, 64, 1)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_few_bf16_64);
ENTRY(tr_cuda_attend_few_bf16_128, tr_cuda_bf16, 128, 1)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_few_bf16_128);
ENTRY(tr_cuda_attend_few_f16_64, tr_cuda_f16, 64, 1)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_few_f16_64);
ENTRY(tr_cuda_attend_few_f16_128, tr_cuda_f16, 128, 1)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_few_f16_128);
