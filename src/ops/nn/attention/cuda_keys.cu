// The gradients of keys and values. Each is summed over the queries that see its key,
// of all heads that share it, one head after the other.
#include "ops/nn/attention/cuda_backward.cuh"

namespace {
template <class T, int PIECE, int TILES> struct by_keys : tr_backward<T, PIECE, TILES> {
    typedef tr_backward<T, PIECE, TILES> base;
    using base::a, base::args, base::first, base::piece, base::pieces;
    using base::N, base::R, base::PART, base::ROWS, base::WARP_ROWS;
    using base::s, base::dp, base::row, base::column, base::part;
    enum { QUERIES = base::COLUMNS };
    enum { LSE, DELTA, PLACES }; // numbers of a query

    int tile, tiles; // the first of queries, and how many of each head
    float dk[TILES][base::M][4], dv[TILES][base::M][4];

    __device__ by_keys(const tr_cuda_attend_backward_args &args_) : base(args_) {
        first = (int)blockIdx.x * ROWS;
        tile = tr_first_query(a, positions(), first) / QUERIES;
        tiles = tiles_seeing(first + ROWS - 1);
        tr_clear(dk);
        tr_clear(dv);
    }

    // Of the tiles from `tile` on: those whose first query sees a key up to `key`. If a
    // query sees none of them, no later one does.
    __device__ int tiles_seeing(int key) const {
        int from = tile, to = (a.queries + QUERIES - 1) / QUERIES;
        while (from < to) {
            int middle = (from + to) / 2;
            bool sees = tr_oldest(a, positions(), middle * QUERIES) <= key;
            from = sees ? middle + 1 : from;
            to = sees ? to : middle;
        }
        return from - tile;
    }

    // Of the keys: asked for anew each time, because registers are scarce.
    static __device__ int sample() {
        return blockIdx.z;
    }

    __device__ int head() const {
        return tr_quotient(blockIdx.y, pieces);
    }

    // Of the sample's tokens, or NULL.
    __device__ const int32_t *positions() const {
        return a.positions ? a.positions + (int64_t)sample() * a.queries : NULL;
    }

    __device__ int stages() const {
        return tiles * a.group * pieces;
    }

    __device__ int head_of(int stage) const {
        return head() * a.group +
               (a.group == 1 ? 0 : tr_quotient(stage, pieces) / tiles);
    }

    __device__ int query(int stage) const {
        int at = tr_quotient(stage, pieces);
        return (tile + (a.group == 1 ? at : at % tiles)) * QUERIES;
    }

    template <int WHICH>
    __device__ void fetch_both(const tr_cuda_rows &rows, const tr_cuda_rows &columns,
                               int stage) const {
        int of = base::piece_of(stage), q = query(stage);
        if (base::needs_rows(stage)) {
            tr_fetch_tile<T, PIECE, ROWS>(
                base::rows(WHICH),
                tr_rows_at<T>(a, rows, sample(), head(), first, a.queries - first, of));
        }
        tr_fetch_tile<T, PIECE, QUERIES>(
            base::columns(stage, WHICH),
            tr_rows_at<T>(a, columns, sample(), head_of(stage), q, a.queries - q, of));
    }

    __device__ void fetch_numbers(int stage) const {
        int q = query(stage) + tr_cuda_thread();
        int64_t at = ((int64_t)sample() * a.heads + head_of(stage)) * a.queries + q;
        bool there = q < a.queries;
        if (threadIdx.x >= QUERIES) {
            return;
        }
        tr_cuda_copy4(base::numbers(stage, LSE) + threadIdx.x,
                      args.lse + (there ? at : 0), there);
        tr_cuda_copy4(base::numbers(stage, DELTA) + threadIdx.x,
                      args.delta + (there ? at : 0), there);
        if (a.positions) {
            tr_cuda_copy4(base::numbers(stage, PLACES) + threadIdx.x,
                          positions() + (there ? q : 0), there);
        }
    }

    __device__ void fetch(int stage) const {
        fetch_both<0>(a.k, a.q, stage);
        fetch_both<1>(a.v, args.dy, stage);
        fetch_numbers(stage);
    }

    // Does a query of the part from query q on see a key of this warp?
    __device__ bool any_sees(int q) const {
        int apart = q - first - tr_warp_row<TILES>();
        bool near = apart + PART > 0 && apart - WARP_ROWS + 1 < a.window;
        return (a.both || near) && q < a.queries;
    }

    // Do all of them see all keys of this warp?
    __device__ bool all_see(int q) const {
        int apart = q - first - tr_warp_row<TILES>();
        bool near = apart >= WARP_ROWS - 1 && apart + PART <= a.window;
        return (a.both || near) && q + PART <= a.queries && !a.positions;
    }

    // The first key that a query sees; none for a query that is not there.
    __device__ int oldest(int q, const int *place) const {
        int reach = a.window - 1;
        reach = a.positions && *place < reach ? *place : reach;
        return q < a.queries ? q - reach : INT32_MAX;
    }

    // The scores of queries that do not see a key.
    __device__ void mask(int q, const int *places) {
        if (all_see(q)) {
            return;
        }
        int thread = tr_cuda_thread(), lane = thread % TR_LANES;
        int key0 = first + thread / TR_LANES * WARP_ROWS + lane / TR_QUAD;
        TR_CUDA_UNROLL
        for (int r = 0; r < R; r++) {
            int key = key0 + 8 * r, seen = tr_first_query(a, positions(), key);
            TR_CUDA_UNROLL
            for (int i = 0; i < 2 * N; i++) {
                int at = i / 2 * 8 + lane % TR_QUAD * 2 + i % 2;
                float *score = &s[r / 2][i / 2][r % 2 * 2 + i % 2];
                bool sees = key >= oldest(q + at, places + at) && seen <= q + at;
                *score = sees ? *score : -INFINITY;
            }
        }
    }

    // Before scores take their registers.
    __device__ void draw(const tr_head &h, int q) {
        int key = first + tr_warp_row<TILES>();
        base::keeps = 0;
        TR_CUDA_UNROLL
        for (int i = 0; i < TILES * N / 2; i++) { // two fragments
            base::keeps |=
                tr_keeps_by_keys(a, h, q + i % (N / 2) * 16, key + i / (N / 2) * 16)
                << 8 * i;
        }
    }

    // s becomes the kept probabilities, dp the gradients of the scores.
    template <bool DROPS> __device__ void take(const float *lse, const float *delta) {
        TR_CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            TR_CUDA_UNROLL
            for (int i = 0; i < 4 * TILES; i++) {
                int at = column(n, i);
                float *score = &s[i / 4][n][i % 4], *through = &dp[i / 4][n][i % 4];
                float m = base::template multiplier<DROPS>(n, i);
                tr_pair g =
                    tr_pair_of(a, *score, *through, lse[at] * TR_LOG2_E, delta[at], m);
                *score = g.kept;
                *through = g.through;
            }
        }
    }

    // Of the part from query q on, at `from` in its tile.
    template <bool DROPS> __device__ void compute_part(int stage, int from, int q) {
        bool last = base::is_last(stage);
        if (DROPS && last) {
            draw(tr_head_of(a, sample(), head_of(stage)), q);
        }
        base::multiply(stage, from);
        if (last) {
            mask(q, (const int *)(const void *)(base::numbers(stage, PLACES) + from));
            take<DROPS>(base::numbers(stage, LSE) + from,
                        base::numbers(stage, DELTA) + from);
            tr_multiply_columns<T, PIECE>(dv, s, part(stage, 1, from));
            tr_multiply_columns<T, PIECE>(dk, dp, part(stage, 0, from));
        }
    }

    __device__ void compute(int stage) {
        int q = query(stage);
        TR_CUDA_UNROLL
        for (int from = 0; from < QUERIES; from += PART) {
            if (any_sees(q + from)) {
                a.dropout > 0 ? compute_part<true>(stage, from, q + from)
                              : compute_part<false>(stage, from, q + from);
            }
        }
    }

    __device__ void finish() const {
        int of = piece * PIECE;
        tr_put_scaled(
            tr_rows_to<T>(a, a.k, args.dk, sample(), head(), first, of, args.add), dk,
            a.scale);
        tr_put_scaled(
            tr_rows_to<T>(a, a.v, args.dv, sample(), head(), first, of, args.add), dv,
            1);
    }
};
} // namespace

// blockIdx: keys of a block; head of keys and piece of the depth; sample
TR_ATTEND_ENTRY(tr_cuda_attend_keys_f32, by_keys, float, 64, 1)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_f32);
TR_ATTEND_ENTRY(tr_cuda_attend_keys_bf16_64, by_keys, tr_cuda_bf16, 64,
                TR_CUDA_ATTEND_KEYS_64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_bf16_64);
TR_ATTEND_ENTRY(tr_cuda_attend_keys_bf16_128, by_keys, tr_cuda_bf16, 128,
                TR_CUDA_ATTEND_KEYS_128)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_bf16_128);
TR_ATTEND_ENTRY(tr_cuda_attend_keys_f16_64, by_keys, tr_cuda_f16, 64,
                TR_CUDA_ATTEND_KEYS_64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_f16_64);
TR_ATTEND_ENTRY(tr_cuda_attend_keys_f16_128, by_keys, tr_cuda_f16, 128,
                TR_CUDA_ATTEND_KEYS_128)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_f16_128);
