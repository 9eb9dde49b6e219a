// Plain: a warp has one query, or one key, and meets the others one after the other. So
// sums are made in one order, and no context x context matrix is in memory.
#include "ops/attention/cuda.h"

#include "backend/cuda/real.cuh"
#include "ops/dropout/draw.h"

enum { LANES = TR_CUDA_LANES, PARTS = TR_CUDA_DEPTH_MAX / LANES };

// Lane l has elements l, l + 32, ... of a vector of a head.
typedef struct slice {
    float part[PARTS];
} slice;

template <class T> static __device__ slice load(const T *x, int64_t depth) {
    slice s;
    for (int p = 0; p < PARTS; p++) {
        int64_t d = threadIdx.x + (int64_t)p * LANES;
        s.part[p] = d < depth ? tr_cuda_get(x[d]) : 0;
    }
    return s;
}

template <class T>
static __device__ void store(T *x, int64_t depth, const slice &s, float scale,
                             bool add) {
    for (int p = 0; p < PARTS; p++) {
        int64_t d = threadIdx.x + (int64_t)p * LANES;
        if (d < depth) {
            tr_cuda_give(&x[d], s.part[p] * scale, add);
        }
    }
}

static __device__ float dot(const slice &a, const slice &b) {
    float sum = 0;
    for (int p = 0; p < PARTS; p++) {
        sum += a.part[p] * b.part[p];
    }
    return tr_cuda_warp_sum(sum);
}

static __device__ void add_scaled(slice &sum, float scale, const slice &x) {
    for (int p = 0; p < PARTS; p++) {
        sum.part[p] += scale * x.part[p];
    }
}

// What dropout makes of the probability of (query, key).
static __device__ float multiplier(const tr_cuda_attention &a, int64_t row,
                                   int64_t head, int64_t query, int64_t key) {
    if (a.dropout == 0) {
        return 1;
    }
    tr_draw draw = tr__draw_open(&a.run, row, a.draw_id, a.dropout);
    int64_t down = head * a.down + query / TR_DRAW_ROWS;
    int64_t group = down * a.across + key / TR_DRAW_LANES;
    int64_t inside = query % TR_DRAW_ROWS * TR_DRAW_LANES + key % TR_DRAW_LANES;
    return tr__draw_multiplier(&draw, (uint64_t)(group * TR_DRAW_GROUP + inside));
}

// Where a query, key or value begins in qkv.
static __device__ int64_t query_at(const tr_cuda_attention &a, int64_t row,
                                   int64_t head, int64_t place) {
    return (row * a.context + place) * a.pitch + head * a.depth;
}

static __device__ int64_t key_at(const tr_cuda_attention &a, int64_t row, int64_t head,
                                 int64_t place) {
    return (row * a.context + place) * a.pitch + a.keys + head / a.group * a.depth;
}

static __device__ int64_t value_at(const tr_cuda_attention &a, int64_t row,
                                   int64_t head, int64_t place) {
    return key_at(a, row, head, place) - a.keys + a.values;
}

// Where the result of a query begins in y.
static __device__ int64_t result_at(const tr_cuda_attention &a, int64_t row,
                                    int64_t head, int64_t place) {
    return (row * a.context + place) * a.width + head * a.depth;
}

// The first key that a query sees, of the nearest ones and of its own document.
static __device__ int64_t oldest(const tr_cuda_attention &a, int64_t row,
                                 int64_t query) {
    int64_t near = query - a.window + 1 > 0 ? query - a.window + 1 : 0;
    int64_t first = a.positions ? query - a.positions[row * a.context + query] : 0;
    return near > first ? near : first;
}

// blockIdx: query, head, row of the batch
template <class T> static __device__ void attend(const tr_cuda_attend_args &args) {
    const tr_cuda_attention &a = args.of;
    const T *qkv = (const T *)a.qkv;
    int64_t query = blockIdx.x, head = blockIdx.y, row = blockIdx.z;
    slice q = load(qkv + query_at(a, row, head, query), a.depth), sum = {{0}};
    float top = -INFINITY, total = 0;
    for (int64_t key = oldest(a, row, query); key <= query; key++) {
        float score = a.scale * dot(q, load(qkv + key_at(a, row, head, key), a.depth));
        float higher = score > top ? score : top;
        float shrink = expf(top - higher), p = expf(score - higher);
        total = total * shrink + p;
        for (int i = 0; i < PARTS; i++) {
            sum.part[i] *= shrink;
        }
        add_scaled(sum, p * multiplier(a, row, head, query, key),
                   load(qkv + value_at(a, row, head, key), a.depth));
        top = higher;
    }
    store((T *)args.y + result_at(a, row, head, query), a.depth, sum, 1 / total,
          args.add_y);
    if (args.lse && threadIdx.x == 0) {
        tr_cuda_put(&args.lse[(row * a.heads + head) * a.context + query],
                    top + logf(total), args.add_lse);
    }
}

extern "C" __global__ void tr_cuda_attend(tr_cuda_attend_args args) {
    TR_CUDA_BY_REAL(args.of.real, attend, args);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_attend);

// What goes back from one query and one key: dv gets kept * dy, and with `through`, the
// gradient of q . k, dq gets through * k and dk through * q.
typedef struct pair {
    float kept, through;
} pair;

static __device__ pair pair_of(const tr_cuda_attention &a, int64_t row, int64_t head,
                               int64_t query, int64_t key, const slice &q,
                               const slice &k, const slice &v, const slice &dy,
                               const slice &y, float lse) {
    float p = expf(a.scale * dot(q, k) - lse);
    float m = multiplier(a, row, head, query, key);
    pair g = {p * m, p * (m * dot(dy, v) - dot(dy, y)) * a.scale};
    return g;
}

template <class T>
static __device__ void queries_backward(const tr_cuda_attend_backward_args &args) {
    const tr_cuda_attention &a = args.of;
    const T *qkv = (const T *)a.qkv, *of_dy = (const T *)args.dy;
    const T *of_y = (const T *)args.y;
    T *dqkv = (T *)args.dqkv;
    int64_t query = blockIdx.x, head = blockIdx.y, row = blockIdx.z;
    slice q = load(qkv + query_at(a, row, head, query), a.depth), dq = {{0}};
    slice dy = load(of_dy + result_at(a, row, head, query), a.depth);
    slice y = load(of_y + result_at(a, row, head, query), a.depth);
    float lse = args.lse[(row * a.heads + head) * a.context + query];
    for (int64_t key = oldest(a, row, query); key <= query; key++) {
        slice k = load(qkv + key_at(a, row, head, key), a.depth);
        slice v = load(qkv + value_at(a, row, head, key), a.depth);
        pair g = pair_of(a, row, head, query, key, q, k, v, dy, y, lse);
        add_scaled(dq, g.through, k);
    }
    store(dqkv + query_at(a, row, head, query), a.depth, dq, 1, args.add);
}

extern "C" __global__ void
tr_cuda_attend_queries_backward(tr_cuda_attend_backward_args args) {
    TR_CUDA_BY_REAL(args.of.real, queries_backward, args);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_queries_backward);

// blockIdx: key, head of the keys, row of the batch
template <class T>
static __device__ void keys_backward(const tr_cuda_attend_backward_args &args) {
    const tr_cuda_attention &a = args.of;
    const T *qkv = (const T *)a.qkv, *of_dy = (const T *)args.dy;
    const T *of_y = (const T *)args.y;
    T *dqkv = (T *)args.dqkv;
    int64_t key = blockIdx.x, row = blockIdx.z, first = blockIdx.y * a.group;
    int64_t end = key + a.window < a.context ? key + a.window : a.context;
    slice k = load(qkv + key_at(a, row, first, key), a.depth), dk = {{0}}, dv = {{0}};
    slice v = load(qkv + value_at(a, row, first, key), a.depth);
    for (int64_t head = first; head < first + a.group; head++) {
        for (int64_t query = key; query < end && oldest(a, row, query) <= key;
             query++) {
            slice q = load(qkv + query_at(a, row, head, query), a.depth);
            slice dy = load(of_dy + result_at(a, row, head, query), a.depth);
            slice y = load(of_y + result_at(a, row, head, query), a.depth);
            float lse = args.lse[(row * a.heads + head) * a.context + query];
            pair g = pair_of(a, row, head, query, key, q, k, v, dy, y, lse);
            add_scaled(dk, g.through, q);
            add_scaled(dv, g.kept, dy);
        }
    }
    store(dqkv + key_at(a, row, first, key), a.depth, dk, 1, args.add);
    store(dqkv + value_at(a, row, first, key), a.depth, dv, 1, args.add);
}

extern "C" __global__ void
tr_cuda_attend_keys_backward(tr_cuda_attend_backward_args args) {
    TR_CUDA_BY_REAL(args.of.real, keys_backward, args);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_attend_keys_backward);
