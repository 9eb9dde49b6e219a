// Which pairs of a query and a key count, and by how much, for the kernels of
// attention.
#ifndef TR_OPS_ATTENTION_CUDA_PAIRS_H
#define TR_OPS_ATTENTION_CUDA_PAIRS_H

#include "ops/nn/attention/cuda_tile.cuh"
#include "ops/nn/dropout/draw.h"

#define TR_LOG2_E 1.44269504088896341f

// One head of one sample.
struct tr_head {
    int64_t sample, head;
    const int32_t *positions; // of its tokens, or NULL
    tr_draw draw;
};

static __device__ inline tr_head tr_head_of(const tr_cuda_attention &a, int64_t sample,
                                            int64_t head) {
    tr_head h;
    h.sample = sample;
    h.head = head;
    h.positions = a.positions ? a.positions + sample * a.queries : NULL;
    h.draw = tr__draw_open(&a.run, sample, a.draw_id, a.dropout);
    return h;
}

// A narrow head of 16 bits is one piece (tr__cuda_attend_piece).
template <class T, int PIECE>
constexpr bool tr_one_piece = sizeof(T) == 2 && PIECE == 64;

// Of the depth.
template <class T, int PIECE>
static __device__ inline int tr_pieces(const tr_cuda_attention &a) {
    return tr_one_piece<T, PIECE> ? 1 : (a.depth + PIECE - 1) / PIECE;
}

// `count` rows from `place` on, in columns from `column` on.
template <class T>
static __device__ inline tr_source<T>
tr_rows_at(const tr_cuda_attention &a, const tr_cuda_rows &rows, int64_t sample,
           int64_t head, int place, int count, int column) {
    tr_source<T> s;
    s.first = (const T *)rows.first + sample * rows.sample + head * rows.head +
              place * rows.place + column;
    s.pitch = rows.place;
    s.rows = count;
    s.columns = a.depth - column;
    s.whole = a.whole;
    return s;
}

// The same rows of `to`.
template <class T>
static __device__ inline tr_destination<T>
tr_rows_to(const tr_cuda_attention &a, const tr_cuda_rows &rows, void *to,
           int64_t sample, int64_t head, int place, int column, bool add) {
    tr_destination<T> t;
    t.first =
        (T *)to + sample * rows.sample + head * rows.head + place * rows.place + column;
    t.pitch = rows.place;
    t.rows = a.queries - place;
    t.columns = a.depth - column;
    t.whole = a.whole;
    t.add = add;
    return t;
}

static __device__ inline int tr_position(const tr_cuda_attention &a, int i) {
    return a.position + i * a.advance;
}

// The position of the first key that query i sees, of the nearest ones and of its own
// document. It is never before that of the query before. A query behind the last one
// counts as the last one.
static __device__ inline int tr_oldest(const tr_cuda_attention &a,
                                       const int32_t *positions, int i) {
    i = i < a.queries ? i : a.queries - 1;
    int position = tr_position(a, i), near = position - a.window + 1;
    int first = positions ? position - positions[i] : 0;
    return near > first ? near : first;
}

// The position of the first query that sees the key at a position: its own or, both
// ways, that of the first token of its document.
static __device__ inline int tr_first_query(const tr_cuda_attention &a,
                                            const int32_t *positions, int key) {
    if (!a.both) {
        return key;
    }
    return positions && key < a.queries ? key - positions[key] : 0;
}

// The position behind the last key that query i sees: behind its own or, both ways,
// behind its document. A query behind the last one counts as the last one.
static __device__ inline int tr_key_end(const tr_cuda_attention &a,
                                        const int32_t *positions, int i) {
    if (!a.both) {
        return tr_position(a, i) + 1;
    }
    i = i < a.queries ? i : a.queries - 1;
    int from = positions ? i + 1 : a.queries, to = a.queries;
    while (from < to) { // what is of the document comes first
        int middle = (from + to) / 2;
        bool sees = middle - positions[middle] <= i;
        from = sees ? middle + 1 : from;
        to = sees ? to : middle;
    }
    return from;
}

// ---- dropout: a block of draws is of eight queries and one key

// Exchanges bits between lanes that are SHIFT lanes apart for each field apart: of the
// eight bits that the lanes have, field i of lane l comes from field l of lane i.
template <int FIELD, int LANES>
static __device__ inline uint32_t tr_transpose(uint32_t bits) {
    TR_CUDA_UNROLL
    for (int step = 8 / FIELD / 2; step > 0; step /= 2) {
        int shift = step * FIELD;
        uint32_t low = shift == 4 ? 0x0F : shift == 2 ? 0x33 : 0x55;
        uint32_t other = __shfl_xor_sync(TR_CUDA_WARP, bits, step * LANES);
        bits = tr_lane() / LANES & step ? (bits & ~low) | (other >> shift & low)
                                        : (bits & low) | (other & low) << shift;
    }
    return bits & 0xFF;
}

static __device__ inline uint32_t tr_keeps(const tr_cuda_attention &a, const tr_head &h,
                                           int query, int key) {
    int64_t group =
        ((a.first_head + h.head) * a.down + query / TR_DRAW_ROWS) * a.across +
        key / TR_DRAW_LANES;
    int64_t block = group * TR_DRAW_LANES + key % TR_DRAW_LANES;
    return tr__draw_keeps(&h.draw, (uint64_t)block);
}

// Which elements of two fragments, queries by keys, are kept: bit i of element i % 4 of
// fragment i / 4. query, key: of the first row and column, multiples of 16
static __device__ inline uint32_t
tr_keeps_by_queries(const tr_cuda_attention &a, const tr_head &h, int query, int key) {
    int i = tr_lane() / TR_QUAD, column = tr_lane() % TR_QUAD * 2;
    uint32_t keeps =
        tr_keeps(a, h, query + i / 2 % 2 * 8, key + i / 4 * 8 + column + i % 2);
    return tr_transpose<1, TR_QUAD>(keeps);
}

// The same for keys by queries.
static __device__ inline uint32_t
tr_keeps_by_keys(const tr_cuda_attention &a, const tr_head &h, int query, int key) {
    int i = tr_lane() % TR_QUAD, row = tr_lane() / TR_QUAD;
    uint32_t keeps = tr_keeps(a, h, query + i / 2 * 8, key + i % 2 * 8 + row);
    return tr_transpose<2, 1>(keeps);
}

static __device__ inline float tr_multiplier(const tr_cuda_attention &a, uint32_t keeps,
                                             int i) {
    return keeps >> i & 1 ? a.kept : 0;
}

#endif
