// The gradients of queries. Each is summed over the keys that its query sees.
#include "ops/attention/cuda_backward.cuh"

namespace {
template <class T, int PIECE> struct by_queries : tr_backward<T, PIECE> {
    typedef tr_backward<T, PIECE> base;
    using base::a, base::args, base::first, base::piece, base::pieces;
    using base::s, base::dp, base::row, base::column, base::N;
    enum { KEYS = base::COLUMNS };

    tr_head h;
    int tile, end, latest, oldest[2];        // as the forward's
    float lse[2], delta[2], sum[base::M][4]; // of this lane's two queries

    __device__ by_queries(const tr_cuda_attend_backward_args &args_) : base(args_) {
        h = tr_head_of(a, blockIdx.z, blockIdx.y / pieces);
        first = (int)(gridDim.x - 1 - blockIdx.x) * TR_ROWS; // long ones first
        tile = tr_oldest(a, h.positions, first) / KEYS;
        latest = tr_oldest(a, h.positions, first + TR_ROWS - 1);
        end = first + TR_ROWS < a.queries ? first + TR_ROWS : a.queries;
        TR_CUDA_UNROLL
        for (int r = 0; r < 2; r++) {
            int query = first + row(r);
            int64_t at = (h.sample * a.heads + h.head) * a.queries + query;
            oldest[r] = tr_oldest(a, h.positions, query);
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
            tr_fetch_tile<T, PIECE, TR_ROWS>(
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

    // The scores of keys that a query does not see.
    __device__ void mask(int k) {
        if (k >= latest && k + KEYS - 1 <= first + tr_warp_row()) {
            return;
        }
        TR_CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            TR_CUDA_UNROLL
            for (int i = 0; i < 4; i++) {
                int at = k + column(n, i);
                bool seen = at >= oldest[i / 2] && at <= first + row(i / 2);
                s[n][i] = seen ? s[n][i] : -INFINITY;
            }
        }
    }

    // dp becomes the gradients of the scores.
    template <bool DROPS> __device__ void take(int k) {
        uint32_t keeps = 0;
        TR_CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            keeps >>= 4;
            if (DROPS && n % 2 == 0) { // of two fragments
                keeps = tr_keeps_by_queries(a, h, first + tr_warp_row(), k + 8 * n);
            }
            TR_CUDA_UNROLL
            for (int i = 0; i < 4; i++) {
                float m = DROPS ? tr_multiplier(h, keeps, i) : 1;
                dp[n][i] = tr_pair_of(a, s[n][i], dp[n][i], lse[i / 2], delta[i / 2], m)
                               .through;
            }
        }
    }

    __device__ void compute(int stage) {
        base::multiply(stage);
        if (base::is_last(stage)) {
            mask(key(stage));
            a.dropout > 0 ? take<true>(key(stage)) : take<false>(key(stage));
            tr_multiply_columns<T, PIECE>(sum, dp, base::columns(stage, 0));
        }
    }

    __device__ void finish() const {
        tr_put(tr_rows_to<T>(a, a.q, args.dq, h.sample, h.head, first, piece * PIECE,
                             args.add),
               sum, a.scale, a.scale);
    }
};
} // namespace

// blockIdx: 64 queries; head and piece of the depth; sample
TR_ATTEND_ENTRY(tr_cuda_attend_queries_f32, by_queries, float, 64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_queries_f32);
TR_ATTEND_ENTRY(tr_cuda_attend_queries_bf16_64, by_queries, tr_cuda_bf16, 64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_queries_bf16_64);
TR_ATTEND_ENTRY(tr_cuda_attend_queries_bf16_128, by_queries, tr_cuda_bf16, 128)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_queries_bf16_128);
TR_ATTEND_ENTRY(tr_cuda_attend_queries_f16_64, by_queries, tr_cuda_f16, 64)
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_queries_f16_64);
TR_ATTEND_ENTRY(tr_cuda_attend_queries_f16_128, by_queries, tr_cuda_f16, 128)
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
