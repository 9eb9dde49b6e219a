// The gradients of the tables. The rows of an id are added in their order, in parts of
// TR_CUDA_EMBED_PART, and the parts in theirs: the same bits each time, whichever other
// ids a batch has, and no thread has more than a part to do.
#include "ops/nn/embedding/cuda_rows.cuh"

enum { AHEAD = 4 }; // rows that a thread has under way at a time

// *sum += row(0) + ... + row(count - 1), one after the other.
template <bool ALIGNED, int N, class F>
static __device__ void add_in_order(tr_cuda_vector<N> *sum, int64_t count,
                                    const F &row) {
    int64_t k = 0;
    for (; k + AHEAD <= count; k += AHEAD) {
        tr_cuda_vector<N> x[AHEAD];
        TR_CUDA_UNROLL
        for (int j = 0; j < AHEAD; j++) {
            x[j] = tr_cuda_load<N>(row(k + j), ALIGNED);
        }
        TR_CUDA_UNROLL
        for (int j = 0; j < AHEAD; j++) {
            TR_CUDA_UNROLL
            for (int e = 0; e < N; e++) {
                sum->e[e] += x[j].e[e];
            }
        }
    }
    for (; k < count; k++) {
        tr_cuda_vector<N> x = tr_cuda_load<N>(row(k), ALIGNED);
        TR_CUDA_UNROLL
        for (int e = 0; e < N; e++) {
            sum->e[e] += x.e[e];
        }
    }
}

template <int N, class F>
static __device__ void add_rows(tr_cuda_vector<N> *sum, int64_t count, bool aligned,
                                const F &row) {
    if (N > 1 && aligned) {
        add_in_order<true>(sum, count, row);
    } else {
        add_in_order<false>(sum, count, row);
    }
}

// The parts that begin at a sorted row: the first of an id goes to the table.
template <class T, int N>
static __device__ void add_tokens(const tr_cuda_embed_backward_args &a) {
    enum { PART = TR_CUDA_EMBED_PART };
    const tr_cuda_embedding &e = a.of;
    const T *dy = (const T *)a.dy;
    const uint64_t *order = a.order;
    bool aligned = tr_cuda_is_aligned(dy) && tr_cuda_is_aligned(a.dtable);
    TR_CUDA_LOOP(v, e.rows * (e.width / N)) {
        int64_t at = v / (e.width / N), c = v % (e.width / N) * N;
        tr_cuda_embed_run run = a.runs[at];
        int64_t token = trained_row(e, e.ids[(uint32_t)order[at]]);
        if (token < 0 || (at - run.first) % PART != 0) {
            continue;
        }
        bool begins = at == run.first;
        float *to =
            begins ? a.dtable + token * e.width + c : a.parts + at / PART * e.width + c;
        tr_cuda_vector<N> sum = {};
        if (begins) {
            sum = tr_cuda_load<N>(to, aligned);
        }
        int64_t count = run.end - at < PART ? run.end - at : (int64_t)PART;
        add_rows<N>(&sum, count, aligned, [=](int64_t k) {
            return dy + (int64_t)(uint32_t)order[at + k] * e.width + c;
        });
        tr_cuda_store<N>(to, sum, false, aligned);
    }
}

template <class T>
static __device__ void add_tokens_by_width(const tr_cuda_embed_backward_args &a) {
    TR_CUDA_BY_WIDTH(T, a.of.width, add_tokens, a);
}

extern "C" __global__ void
tr_cuda_embed_tokens_backward(tr_cuda_embed_backward_args a) {
    TR_CUDA_BY_REAL(a.real, add_tokens_by_width, a);
}
TR_CUDA_KERNEL(tr_cuda_embed_tokens_backward);

// The other parts of each id that has some, behind the first.
template <class T, int N>
static __device__ void join_parts(const tr_cuda_embed_backward_args &a) {
    enum { PART = TR_CUDA_EMBED_PART };
    const tr_cuda_embedding &e = a.of;
    bool aligned = tr_cuda_is_aligned(a.parts) && tr_cuda_is_aligned(a.dtable);
    TR_CUDA_LOOP(v, e.rows * (e.width / N)) {
        int64_t at = v / (e.width / N), c = v % (e.width / N) * N;
        tr_cuda_embed_run run = a.runs[at];
        int64_t token = trained_row(e, e.ids[(uint32_t)a.order[at]]);
        if (token < 0 || at != run.first || run.end - at <= PART) {
            continue;
        }
        float *to = a.dtable + token * e.width + c;
        const float *parts = a.parts + (at + PART) / PART * e.width + c;
        tr_cuda_vector<N> sum = tr_cuda_load<N>(to, aligned);
        add_rows<N>(&sum, (run.end - at - 1) / PART, aligned,
                    [=](int64_t k) { return parts + k * e.width; });
        tr_cuda_store<N>(to, sum, false, aligned);
    }
}

extern "C" __global__ void tr_cuda_embed_join(tr_cuda_embed_backward_args a) {
    TR_CUDA_BY_WIDTH(float, a.of.width, join_parts, a);
}
TR_CUDA_KERNEL(tr_cuda_embed_join);

// Of samples whose places are one after the other.
template <class T, int N>
static __device__ void add_positions(const tr_cuda_embed_backward_args &a) {
    const tr_cuda_embedding &e = a.of;
    bool aligned = tr_cuda_is_aligned(a.dy) && tr_cuda_is_aligned(a.dtable);
    TR_CUDA_LOOP(v, e.positions * (e.width / N)) {
        int64_t p = v / (e.width / N), c = v % (e.width / N) * N, of = p - e.position;
        const T *dy = (const T *)a.dy + of * e.width + c;
        tr_cuda_vector<N> sum = {};
        if (of >= 0 && of < e.length) {
            add_rows<N>(&sum, e.rows / e.length, aligned,
                        [=](int64_t k) { return dy + k * e.length * e.width; });
        }
        tr_cuda_store<N>(a.dtable + p * e.width + c, sum, a.add, aligned);
    }
}

template <class T>
static __device__ void add_positions_by_width(const tr_cuda_embed_backward_args &a) {
    TR_CUDA_BY_WIDTH(T, a.of.width, add_positions, a);
}

extern "C" __global__ void
tr_cuda_embed_positions_backward(tr_cuda_embed_backward_args a) {
    TR_CUDA_BY_REAL(a.real, add_positions_by_width, a);
}
TR_CUDA_KERNEL(tr_cuda_embed_positions_backward);
