// The gradients of keys and values. Each is summed over the queries that see its key,
// of all heads that share it, one head after the other.
#include "ops/attention/cuda_backward.cuh"

namespace {
template <class T, int PIECE> struct by_keys : tr_backward<T, PIECE> {
    typedef tr_backward<T, PIECE> base;
    using base::a, base::args, base::first, base::piece, base::pieces;
    using base::s, base::dp, base::row, base::column, base::N;
    enum { QUERIES = base::COLUMNS };
    enum { LSE, DELTA, PLACES }; // numbers of a query

    int64_t sample, head; // of the keys
    int tile, tiles;      // the first of queries, and how many of each head
    const int32_t *positions;
    float dk[base::M][4], dv[base::M][4];

    __device__ by_keys(const tr_cuda_attend_backward_args &args_) : base(args_) {
        sample = blockIdx.z;
        head = blockIdx.y / pieces;
        first = (int)blockIdx.x * TR_ROWS;
        positions = a.positions ? a.positions + sample * a.queries : NULL;
        tile = first / QUERIES;
        tiles = tiles_seeing(first + TR_ROWS - 1);
        tr_clear(dk);
        tr_clear(dv);
    }

    // Of the tiles from `tile` on: those whose first query sees a key up to `key`. If a
    // query sees none of them, no later one does.
    __device__ int tiles_seeing(int key) const {
        int from = tile, to = (a.queries + QUERIES - 1) / QUERIES;
        while (from < to) {
            int middle = (from + to) / 2;
            bool sees = tr_oldest(a, positions, middle * QUERIES) <= key;
            from = sees ? middle + 1 : from;
            to = sees ? to : middle;
        }
        return from - tile;
    }

    __device__ int stages() const {
        return tiles * a.group * pieces;
    }

    __device__ int64_t head_of(int stage) const {
        return head * a.group + (a.group == 1 ? 0 : tr_quotient(stage, pieces) / tiles);
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
            tr_fetch_tile<T, PIECE, TR_ROWS>(
                base::rows(WHICH),
                tr_rows_at<T>(a, rows, sample, head, first, a.queries - first, of));
        }
        tr_fetch_tile<T, PIECE, QUERIES>(
            base::columns(stage, WHICH),
            tr_rows_at<T>(a, columns, sample, head_of(stage), q, a.queries - q, of));
    }

    __device__ void fetch_numbers(int stage) const {
        int q = query(stage) + (int)threadIdx.x;
        int64_t at = (sample * a.heads + head_of(stage)) * a.queries + q;
        bool there = q < a.queries;
        if (threadIdx.x >= QUERIES) {
            return;
        }
        tr_cuda_copy4(base::numbers(stage, LSE) + threadIdx.x,
                      args.lse + (there ? at : 0), there);
        tr_cuda_copy4(base::numbers(stage, DELTA) + threadIdx.x,
                      args.delta + (there ? at : 0), there);
        if (positions) {
            tr_cuda_copy4(base::numbers(stage, PLACES) + threadIdx.x,
                          positions + (there ? q : 0), there);
        }
    }

    __device__ void fetch(int stage) const {
        fetch_both<0>(a.k, a.q, stage);
        fetch_both<1>(a.v, args.dy, stage);
        fetch_numbers(stage);
    }

    // Do all queries of a tile see all keys of this warp?
    __device__ bool all_see(int q) const {
        int apart = q - first - tr_warp_row();
        return apart >= 15 && apart + QUERIES <= a.window && q + QUERIES <= a.queries &&
               !positions;
    }

    // Does a query see the key that is so far before it?
    __device__ bool sees(int apart, int place) const {
        return apart >= 0 && apart < a.window && (!positions || apart <= place);
    }

    // The scores of queries that do not see a key.
    __device__ void mask(int stage) {
        int q = query(stage);
        const int *places = (const int *)(const void *)base::numbers(stage, PLACES);
        if (all_see(q)) {
            return;
        }
        TR_CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            TR_CUDA_UNROLL
            for (int i = 0; i < 4; i++) {
                int at = column(n, i);
                bool seen =
                    q + at < a.queries && sees(q + at - first - row(i / 2), places[at]);
                s[n][i] = seen ? s[n][i] : -INFINITY;
            }
        }
    }

    // s becomes the kept probabilities, dp the gradients of the scores.
    template <bool DROPS> __device__ void take(int stage) {
        int q = query(stage);
        uint32_t keeps = 0;
        tr_head h = tr_head_of(a, sample, head_of(stage));
        const float *lse = base::numbers(stage, LSE);
        const float *delta = base::numbers(stage, DELTA);
        TR_CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            keeps >>= 4;
            if (DROPS && n % 2 == 0) { // of two fragments
                keeps = tr_keeps_by_keys(a, h, q + 8 * n, first + tr_warp_row());
            }
            TR_CUDA_UNROLL
            for (int i = 0; i < 4; i++) {
                int at = column(n, i);
                float m = DROPS ? tr_multiplier(h, keeps, i) : 1;
                tr_pair g =
                    tr_pair_of(a, s[n][i], dp[n][i], lse[at] * TR_LOG2_E, delta[at], m);
                s[n][i] = g.kept;
                dp[n][i] = g.through;
            }
        }
    }

    __device__ void compute(int stage) {
        base::multiply(stage);
        if (base::is_last(stage)) {
            mask(stage);
            a.dropout > 0 ? take<true>(stage) : take<false>(stage);
            tr_multiply_columns<T, PIECE>(dv, s, base::columns(stage, 1));
            tr_multiply_columns<T, PIECE>(dk, dp, base::columns(stage, 0));
        }
    }

    __device__ void finish() const {
        int of = piece * PIECE;
        tr_put(tr_rows_to<T>(a, a.k, args.dk, sample, head, first, of, args.add), dk,
               a.scale, a.scale);
        tr_put(tr_rows_to<T>(a, a.v, args.dv, sample, head, first, of, args.add), dv, 1,
               1);
    }
};
} // namespace

// blockIdx: 64 keys; head of keys and piece of the depth; sample
TR_ATTEND_ENTRY(tr_cuda_attend_keys_f32, by_keys, float, 64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_f32);
TR_ATTEND_ENTRY(tr_cuda_attend_keys_bf16_64, by_keys, tr_cuda_bf16, 64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_bf16_64);
TR_ATTEND_ENTRY(tr_cuda_attend_keys_bf16_128, by_keys, tr_cuda_bf16, 128)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_bf16_128);
TR_ATTEND_ENTRY(tr_cuda_attend_keys_f16_64, by_keys, tr_cuda_f16, 64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_f16_64);
TR_ATTEND_ENTRY(tr_cuda_attend_keys_f16_128, by_keys, tr_cuda_f16, 128)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_f16_128);
