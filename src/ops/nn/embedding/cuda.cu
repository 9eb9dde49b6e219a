#include "ops/nn/embedding/cuda.h"

#include "backend/cuda/vector.cuh"

// The row of an id in the table, -1: it is none of them.
static __device__ int64_t row_of(const tr_cuda_embedding &e, int32_t id) {
    int64_t row = id - e.first;
    return row >= 0 && row < e.tokens ? row : -1;
}

// The row of the table of positions.
static __device__ int64_t place_of(const tr_cuda_embedding &e, int64_t row) {
    return e.places ? e.places[row] : e.position + row % e.length;
}

template <int N, class T>
static __device__ void add_to(tr_cuda_vector<N> *sum, const T *x, bool aligned) {
    tr_cuda_vector<N> v = tr_cuda_load<N>(x, aligned);
    TR_CUDA_UNROLL
    for (int k = 0; k < N; k++) {
        sum->e[k] += v.e[k];
    }
}

template <class T, int N> static __device__ void embed(const tr_cuda_embed_args &a) {
    const tr_cuda_embedding &e = a.of;
    const T *wte = (const T *)a.wte, *wpe = (const T *)a.wpe;
    const T *before = (const T *)a.before;
    T *y = (T *)a.y;
    bool aligned = tr_cuda_is_aligned(wte) && tr_cuda_is_aligned(wpe) &&
                   tr_cuda_is_aligned(before) && tr_cuda_is_aligned(y);
    TR_CUDA_LOOP(v, e.rows * e.width / N) {
        int64_t i = v * N, row = i / e.width, c = i % e.width;
        int64_t token = row_of(e, e.ids[row]);
        tr_cuda_vector<N> sum = {};
        if (before) {
            add_to(&sum, before + i, aligned);
        }
        if (token >= 0) {
            add_to(&sum, wte + token * e.width + c, aligned);
        }
        if (wpe) {
            add_to(&sum, wpe + place_of(e, row) * e.width + c, aligned);
        }
        tr_cuda_store<N>(y + i, sum, a.add, aligned);
    }
}

template <class T> static __device__ void embed_rows(const tr_cuda_embed_args &a) {
    TR_CUDA_BY_WIDTH(T, a.of.width, embed, a);
}

extern "C" __global__ void tr_cuda_embed(tr_cuda_embed_args a) {
    TR_CUDA_BY_REAL(a.real, embed_rows, a);
}
TR_CUDA_KERNEL(tr_cuda_embed);

// Is the id of the row that of a row before it? All threads of the block ask.
static __device__ bool is_again(const int32_t *ids, int64_t row) {
    bool met = false;
    for (int64_t first = 0; !met && first < row; first += TR_CUDA_THREADS) {
        int64_t r = first + threadIdx.x;
        met = __syncthreads_or(r < row && ids[r] == ids[row]);
    }
    return met;
}

// Which of the TR_CUDA_THREADS rows from `first` on have the id, in their order: so
// many of them, whose distances from `first` go to `found`. All threads of the block
// ask, and read `found` before they ask again.
static __device__ int find_rows(const tr_cuda_embedding &e, int64_t first, int32_t id,
                                int32_t *found) {
    __shared__ int counts[TR_CUDA_THREADS / TR_CUDA_LANES];
    int lane = threadIdx.x % TR_CUDA_LANES, warp = threadIdx.x / TR_CUDA_LANES;
    int64_t row = first + threadIdx.x;
    bool same = row < e.rows && e.ids[row] == id;
    if (!__syncthreads_or(same)) {
        return 0;
    }
    uint32_t of_warp = __ballot_sync(TR_CUDA_WARP, same);
    if (lane == 0) {
        counts[warp] = __popc(of_warp);
    }
    __syncthreads();
    int before = 0, count = 0;
    for (int w = 0; w < TR_CUDA_THREADS / TR_CUDA_LANES; w++) {
        before += w < warp ? counts[w] : 0;
        count += counts[w];
    }
    if (same) {
        found[before + __popc(of_warp & ((1u << lane) - 1))] = (int32_t)threadIdx.x;
    }
    __syncthreads();
    return count;
}

// A block has a row, and does nothing unless its id is the first of its kind. Then it
// adds the gradients of all rows that have the id, in their order: the same bits each
// time, whichever ids meet.
template <class T>
static __device__ void add_tokens(const tr_cuda_embed_backward_args &a) {
    __shared__ int32_t found[TR_CUDA_THREADS];
    const tr_cuda_embedding &e = a.of;
    const T *dy = (const T *)a.dy;
    int64_t row = blockIdx.x, token = row_of(e, e.ids[row]);
    if (token < 0 || is_again(e.ids, row)) {
        return;
    }
    float *to = a.dtable + token * e.width;
    for (int64_t first = row; first < e.rows; first += TR_CUDA_THREADS) {
        int count = find_rows(e, first, e.ids[row], found);
        for (int64_t c = threadIdx.x; count > 0 && c < e.width; c += TR_CUDA_THREADS) {
            float sum = to[c];
            for (int i = 0; i < count; i++) {
                sum += tr_cuda_get(dy[(first + found[i]) * e.width + c]);
            }
            to[c] = sum;
        }
    }
}

extern "C" __global__ void
tr_cuda_embed_tokens_backward(tr_cuda_embed_backward_args a) {
    TR_CUDA_BY_REAL(a.real, add_tokens, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_embed_tokens_backward);

// Of samples whose places are one after the other.
template <class T>
static __device__ void add_positions(const tr_cuda_embed_backward_args &a) {
    const tr_cuda_embedding &e = a.of;
    const T *dy = (const T *)a.dy;
    TR_CUDA_LOOP(i, e.positions * e.width) {
        int64_t p = i / e.width, c = i % e.width, of = p - e.position;
        float sum = 0;
        for (int64_t row = of; of >= 0 && of < e.length && row < e.rows;
             row += e.length) {
            sum += tr_cuda_get(dy[row * e.width + c]);
        }
        tr_cuda_put(&a.dtable[i], sum, a.add);
    }
}

extern "C" __global__ void
tr_cuda_embed_positions_backward(tr_cuda_embed_backward_args a) {
    TR_CUDA_BY_REAL(a.real, add_positions, a);
}
TR_CUDA_KERNEL(tr_cuda_embed_positions_backward);
