// The gradients of queries. Each is summed over the keys that its query sees.
#include "ops/nn/attention/cuda_backward.cuh"

namespace {
template <class T, int PIECE, int TILES>
struct by_queries : tr_backward<T, PIECE, TILES> {
    typedef tr_backward<T, PIECE, TILES> base;
    using base::a, base::args, base::first, base::piece, base::pieces;
    using base::N, base::R, base::PART, base::ROWS, base::WARP_ROWS;
    using base::s, base::dp, base::row, base::column, base::part;
    enum { KEYS = base::COLUMNS };

    tr_head h;
    int tile, end, latest;  // as the forward's
    float lse[R], delta[R]; // of this lane's queries
    float sum[TILES][base::M][4];
    uint32_t held[2][PIECE / 16][TILES][4]; // q and dy, of a narrow head alone

    __device__ by_queries(const tr_cuda_attend_backward_args &args_) : base(args_) {
        h = tr_head_of(a, blockIdx.z, blockIdx.y / pieces);
        first = (int)(gridDim.x - 1 - blockIdx.x) * ROWS; // long ones first
        tile = tr_oldest(a, h.positions, first) / KEYS;
        latest = tr_oldest(a, h.positions, first + ROWS - 1);
        int last = (first + ROWS < a.queries ? first + ROWS : a.queries) - 1;
        end = tr_key_end(a, h.positions, last);
        TR_CUDA_UNROLL
        for (int r = 0; r < R; r++) {
            int query = first + row(r);
            int64_t at = (h.sample * a.heads + h.head) * a.queries + query;
            lse[r] = query < a.queries ? args.lse[at] * TR_LOG2_E : 0;
            delta[r] = query < a.queries ? args.delta[at] : 0;
        }
        tr_clear(sum);
    }

    __device__ int stages() const {
        return ((end + KEYS - 1) / KEYS - tile) * pieces;
    }

    __device__ int key(int stage) const {
        return (tile + tr_quotient(stage, pieces)) * KEYS;
    }

    template <int WHICH>
    __device__ void fetch_both(const tr_cuda_rows &rows, const tr_cuda_rows &columns,
                               int stage) const {
        int of = base::piece_of(stage), k = key(stage);
        if (base::needs_rows(stage)) {
            tr_fetch_tile<T, PIECE, ROWS>(
                base::rows(WHICH),
                tr_rows_at<T>(a, rows, h.sample, h.head, first, a.queries - first, of));
        }
        tr_fetch_tile<T, PIECE, KEYS>(
            base::columns(stage, WHICH),
            tr_rows_at<T>(a, columns, h.sample, h.head / a.group, k, end - k, of));
    }

    __device__ void fetch(int stage) const {
        fetch_both<0>(a.q, a.k, stage);
        fetch_both<1>(args.dy, a.v, stage);
    }

    // Does a query of this warp see a key of the part from key k on?
    __device__ bool any_sees(int k) const {
        int query = first + tr_warp_row<TILES>();
        return query < a.queries && (a.both || k < query + WARP_ROWS) &&
               k + PART > tr_oldest(a, h.positions, query);
    }

    // Do all queries of this warp see all keys of the part?
    __device__ bool all_see(int k) const {
        int last = k + PART - 1;
        return a.both ? !h.positions && last < a.queries
                      : k >= latest && last <= first + tr_warp_row<TILES>();
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
            int query = row + 8 * r, oldest = tr_oldest(a, h.positions, query);
            int newest = tr_key_end(a, h.positions, query) - 1;
            TR_CUDA_UNROLL
            for (int i = 0; i < 2 * N; i++) {
                int at = k + i / 2 * 8 + lane % TR_QUAD * 2 + i % 2;
                float *score = &s[r / 2][i / 2][r % 2 * 2 + i % 2];
                *score = at >= oldest && at <= newest ? *score : -INFINITY;
            }
        }
    }

    // Before scores take their registers.
    __device__ void draw(int k) {
        int query = first + tr_warp_row<TILES>();
        base::keeps = 0;
        TR_CUDA_UNROLL
        for (int i = 0; i < TILES * N / 2; i++) { // two fragments
            base::keeps |= tr_keeps_by_queries(a, h, query + i / (N / 2) * 16,
                                               k + i % (N / 2) * 16)
                           << 8 * i;
        }
    }

    // dp becomes the gradients of the scores.
    template <bool DROPS> __device__ void take() {
        TR_CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            TR_CUDA_UNROLL
            for (int i = 0; i < 4 * TILES; i++) {
                float *through = &dp[i / 4][n][i % 4];
                float m = base::template multiplier<DROPS>(n, i);
                *through = tr_pair_of(a, s[i / 4][n][i % 4], *through, lse[i / 2],
                                      delta[i / 2], m)
                               .through;
            }
        }
    }

    // The rows of a narrow head stay in registers.
    __device__ void hold() {
        int row = tr_warp_row<TILES>();
        TR_CUDA_UNROLL
        for (int i = 0; i < PIECE / 16; i++) {
            tr_load_rows<T, PIECE>(held[0][i], base::rows(0), row, i);
            tr_load_rows<T, PIECE>(held[1][i], base::rows(1), row, i);
        }
    }

    __device__ void multiply(int stage, int from) {
        if constexpr (tr_one_piece<T, PIECE>) {
            tr_clear(s);
            tr_clear(dp);
            TR_CUDA_UNROLL
            for (int i = 0; i < PIECE / 16; i++) {
                tr_multiply_step<T, PIECE>(s, held[0][i], part(stage, 0, from), i);
            }
            TR_CUDA_UNROLL
            for (int i = 0; i < PIECE / 16; i++) {
                tr_multiply_step<T, PIECE>(dp, held[1][i], part(stage, 1, from), i);
            }
        } else {
            base::multiply(stage, from);
        }
    }

    // Of the part from key k on, at `from` in its tile.
    template <bool DROPS> __device__ void compute_part(int stage, int from, int k) {
        bool last = base::is_last(stage);
        if (DROPS && last) {
            draw(k);
        }
        multiply(stage, from);
        if (last) {
            mask(k);
            take<DROPS>();
            tr_multiply_columns<T, PIECE>(sum, dp, part(stage, 0, from));
        }
    }

    __device__ void compute(int stage) {
        int k = key(stage);
        if constexpr (tr_one_piece<T, PIECE>) {
            if (stage == 0) {
                hold();
            }
        }
        TR_CUDA_UNROLL
        for (int from = 0; from < KEYS; from += PART) {
            if (any_sees(k + from)) {
                a.dropout > 0 ? compute_part<true>(stage, from, k + from)
                              : compute_part<false>(stage, from, k + from);
            }
        }
    }

    __device__ void finish() const {
        tr_put_scaled(tr_rows_to<T>(a, a.q, args.dq, h.sample, h.head, first,
                                    piece * PIECE, args.add),
                      sum, a.scale);
    }
};
} // namespace

// blockIdx: queries of a block; head and piece of the depth; sample
TR_ATTEND_ENTRY(tr_cuda_attend_queries_f32, by_queries, float, 64, 1)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_queries_f32);
TR_ATTEND_ENTRY(tr_cuda_attend_queries_bf16_64, by_queries, tr_cuda_bf16, 64,
                TR_CUDA_ATTEND_QUERIES_64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_queries_bf16_64);
TR_ATTEND_ENTRY(tr_cuda_attend_queries_bf16_128, by_queries, tr_cuda_bf16, 128,
                TR_CUDA_ATTEND_QUERIES_128)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_queries_bf16_128);
TR_ATTEND_ENTRY(tr_cuda_attend_queries_f16_64, by_queries, tr_cuda_f16, 64,
                TR_CUDA_ATTEND_QUERIES_64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_queries_f16_64);
TR_ATTEND_ENTRY(tr_cuda_attend_queries_f16_128, by_queries, tr_cuda_f16, 128,
                TR_CUDA_ATTEND_QUERIES_128)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_queries_f16_128);

// A warp has a query of a head. Neighbours have the heads of one query.
template <class T> static __device__ void delta(const tr_cuda_attend_delta_args &a) {
    const T *dy = (const T *)a.dy, *y = (const T *)a.y;
    int64_t i = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / TR_CUDA_LANES;
    bool there = i < a.rows;
    float sum = 0;
    for (int64_t d = tr_lane(); there && d < a.depth; d += TR_CUDA_LANES) {
        sum += tr_cuda_get(dy[i * a.depth + d]) * tr_cuda_get(y[i * a.depth + d]);
    }
    sum = tr_cuda_warp_sum(sum);
    int64_t query = i / a.heads % a.queries, sample = i / a.heads / a.queries;
    if (there && tr_lane() == 0) {
        a.delta[(sample * a.heads + i % a.heads) * a.queries + query] = sum;
    }
}

extern "C" __global__ void tr_cuda_attend_delta(tr_cuda_attend_delta_args args) {
    TR_CUDA_BY_REAL(args.real, delta, args);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_delta);
