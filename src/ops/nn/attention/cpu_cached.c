// Attention over a cache. Each query takes its keys chunk by chunk; what it makes of a
// chunk is a part of the softmax (Dao et al., arXiv 2205.14135, sec. 3.1), and parts
// are merged in the order of chunks. A single query has its chunks shared between
// threads (Flash-Decoding): which chunks there are does not depend on the threads, so
// the bits do not either.
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/attention/cached.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__attention_cached_kernel);

enum {
    CHUNK = TR_ATTENTION_RING, // keys, which lie together also in a ring
    HEAD = 16, // floats before a part's values: its highest score, its sum
};

// Below every score, and finite.
#define NOTHING (-1e38f)
// A highest score that is not above this is of infinities alone.
#define LOWEST (-1e30f)

typedef struct work {
    tr_attention_cached_sizes sizes;
    const tr_real *qkv; // [B, S, pitch]
    tr_real *cache;     // [B, 2 pairs, room, D]
    tr_real *y;         // [B, S, C]
    float *space; // of each thread: scores [CHUNK], two parts; then, of one query,
                  // the parts of its chunks
    int64_t threads;
} work;

// One head of the queries at one position of one sample.
typedef struct query {
    const tr_real *q, *keys, *values; // [D], [room, D], [room, D]
    int64_t oldest, position;         // the keys that it sees
} query;

typedef struct chunks {
    int64_t first, count; // chunk c: keys [c CHUNK, c CHUNK + CHUNK)
} chunks;

static int64_t part_floats(const tr_attention_sizes *s) {
    return HEAD + tr__round_up(s->depth, HEAD);
}

static int64_t thread_floats(const tr_attention_sizes *s) {
    return CHUNK + 2 * part_floats(s);
}

static query query_at(const work *w, int64_t row, int64_t head) {
    const tr_attention_sizes *s = &w->sizes.now;
    int64_t sample = row / s->context, shared = head / s->group;
    int64_t position = w->sizes.position + row % s->context;
    const tr_real *cache = w->cache;
    return (query){
        .q = w->qkv + row * s->pitch + head * s->depth,
        .keys = cache + tr__attention_cached_head(&w->sizes, sample, shared),
        .values =
            cache + tr__attention_cached_head(&w->sizes, sample, shared + s->pairs),
        .oldest = tr__attention_cached_oldest(&w->sizes, position),
        .position = position,
    };
}

static chunks chunks_of(int64_t oldest, int64_t position) {
    int64_t first = oldest / CHUNK;
    return (chunks){first, position / CHUNK - first + 1};
}

// The most that a query has: a window begins anywhere in a chunk.
static int64_t chunks_most(int64_t room) {
    return room / CHUNK + 1;
}

// ---- a part

static float dot(const tr_real *a, const tr_real *b, int64_t depth) {
    tr_vf sum = tr_v_set(0);
    for (int64_t d = 0; d < depth; d += TR_VW) {
        int count = tr_v_left(depth, d);
        sum += tr_v_load_some_r(a + d, count) * tr_v_load_some_r(b + d, count);
    }
    return tr_v_sum(sum);
}

// o [n TR_VW, of which `left` count] = the sum of p[k] times row k of v.
static inline __attribute__((always_inline)) void
sum_columns(const tr_real *v, int64_t depth, const float *p, int64_t keys, const int n,
            int left, float *o) {
    tr_vf sum[8];
    for (int i = 0; i < n; i++) {
        sum[i] = tr_v_set(0);
    }
    for (int64_t k = 0; k < keys; k++) {
        const tr_real *row = v + k * depth;
        for (int i = 0; i < n - 1; i++) {
            sum[i] += tr_v_load_r(row + i * TR_VW) * p[k];
        }
        sum[n - 1] += tr_v_load_some_r(row + (n - 1) * TR_VW, left) * p[k];
    }
    for (int i = 0; i < n; i++) { // o is padded
        tr_v_store(o + i * TR_VW, sum[i]);
    }
}

static void sum_values(const tr_real *v, int64_t depth, const float *p, int64_t keys,
                       float *o) {
    int64_t d = 0;
    for (; d + 8 * TR_VW <= depth; d += 8 * TR_VW) {
        sum_columns(v + d, depth, p, keys, 8, TR_VW, o + d);
    }
    for (; d + 4 * TR_VW <= depth; d += 4 * TR_VW) {
        sum_columns(v + d, depth, p, keys, 4, TR_VW, o + d);
    }
    for (; d < depth; d += TR_VW) {
        sum_columns(v + d, depth, p, keys, 1, tr_v_left(depth, d), o + d);
    }
}

// What the query makes of the keys at places [from, to). p: [CHUNK]; part:
// [part_floats].
static void take_keys(const work *w, const query *q, int64_t from, int64_t to, float *p,
                      float *part) {
    const tr_attention_sizes *s = &w->sizes.now;
    int64_t keys = to - from;
    float scale = tr__attention_scale(s), top = NOTHING;
    tr_vf sum = tr_v_set(0);
    for (int64_t k = 0; k < keys; k++) {
        p[k] = dot(q->q, q->keys + (from + k) * s->depth, s->depth) * scale;
        top = p[k] > top ? p[k] : top;
    }
    for (int64_t k = keys; k % TR_VW != 0; k++) {
        p[k] = NOTHING;
    }
    for (int64_t k = 0; k < keys; k += TR_VW) {
        tr_vf power = tr_v_exp2(tr_v_load(p + k) - top);
        tr_v_store(p + k, power);
        sum += power;
    }
    part[0] = top;
    part[1] = tr_v_sum(sum);
    sum_values(q->values + from * s->depth, s->depth, p, keys, part + HEAD);
}

static void take_chunk(const work *w, const query *q, int64_t chunk, float *p,
                       float *part) {
    int64_t from = tr__max_i64(chunk * CHUNK, q->oldest);
    int64_t to = tr__min_i64(chunk * CHUNK + CHUNK, q->position + 1);
    int64_t place = tr__attention_cached_place(&w->sizes, from);
    take_keys(w, q, place, place + (to - from), p, part);
}

// into: the part of all keys of both. Either's highest score may be NOTHING.
static void merge(const tr_attention_sizes *s, float *into, const float *part) {
    float top = into[0] > part[0] ? into[0] : part[0];
    float old = exp2f(into[0] - top), new = exp2f(part[0] - top);
    into[0] = top;
    into[1] = into[1] * old + part[1] * new;
    for (int64_t d = HEAD; d < HEAD + s->depth; d += TR_VW) {
        tr_v_store(into + d, tr_v_load(into + d) * old + tr_v_load(part + d) * new);
    }
}

static void finish(const work *w, int64_t row, int64_t head, const float *part) {
    const tr_attention_sizes *s = &w->sizes.now;
    tr_real *to = w->y + row * s->width + head * s->depth;
    float sum = part[0] > LOWEST ? part[1] : NAN;
    for (int64_t d = 0; d < s->depth; d += TR_VW) {
        tr_v_put_some_r(to + d, tr_v_load(part + HEAD + d) / sum,
                        tr_v_left(s->depth, d), false);
    }
}

// ---- several queries: each is one thread's

static void run_query(const work *w, int64_t row, int64_t head, float *space) {
    float *p = space, *all = p + CHUNK, *part = all + part_floats(&w->sizes.now);
    query q = query_at(w, row, head);
    chunks of = chunks_of(q.oldest, q.position);
    take_chunk(w, &q, of.first, p, all);
    for (int64_t c = 1; c < of.count; c++) {
        take_chunk(w, &q, of.first + c, p, part);
        merge(&w->sizes.now, all, part);
    }
    finish(w, row, head, all);
}

// The heads of one position that share keys follow each other, and positions go round,
// since later ones have more keys.
static void run_queries(const void *data, int part, int parts) {
    const work *w = data;
    const tr_attention_sizes *s = &w->sizes.now;
    float *space = w->space + part * thread_floats(s);
    for (int64_t row = part; row < s->batch * s->context; row += parts) {
        for (int64_t head = 0; head < s->heads; head++) {
            run_query(w, row, head, space);
        }
    }
}

// ---- one query: its chunks are shared

static float *chunk_part(const work *w, int64_t head, int64_t chunk) {
    const tr_attention_sizes *s = &w->sizes.now;
    int64_t most = chunks_most(w->sizes.room);
    return w->space + w->threads * thread_floats(s) +
           (head * most + chunk) * part_floats(s);
}

static void run_chunks(const void *data, int part, int parts) {
    const work *w = data;
    const tr_attention_sizes *s = &w->sizes.now;
    float *p = w->space + part * thread_floats(s);
    query first = query_at(w, 0, 0);
    chunks of = chunks_of(first.oldest, first.position);
    tr_range mine = tr__range_part(s->pairs * of.count, 1, part, parts);
    for (int64_t i = mine.begin; i < mine.end; i++) {
        int64_t pair = i / of.count, chunk = i % of.count;
        for (int64_t head = pair * s->group; head < (pair + 1) * s->group; head++) {
            query q = query_at(w, 0, head);
            take_chunk(w, &q, of.first + chunk, p, chunk_part(w, head, chunk));
        }
    }
}

static void run_one(const work *w, int threads) {
    const tr_attention_sizes *s = &w->sizes.now;
    query first = query_at(w, 0, 0);
    int64_t count = chunks_of(first.oldest, first.position).count;
    tr__parts_run(threads, run_chunks, w);
    for (int64_t head = 0; head < s->heads; head++) {
        float *all = chunk_part(w, head, 0);
        for (int64_t c = 1; c < count; c++) {
            merge(s, all, chunk_part(w, head, c));
        }
        finish(w, 0, head, all);
    }
}

// ---- the kernel

static void append(const work *w) {
    const tr_attention_sizes *s = &w->sizes.now;
    for (int64_t row = 0; row < s->batch * s->context; row++) {
        const tr_real *from = w->qkv + row * s->pitch + s->keys;
        int64_t place =
            tr__attention_cached_place(&w->sizes, w->sizes.position + row % s->context);
        for (int64_t head = 0; head < 2 * s->pairs; head++) {
            int64_t to = tr__attention_cached_head(&w->sizes, row / s->context, head);
            memcpy(w->cache + to + place * s->depth, from + head * s->depth,
                   (size_t)s->depth * sizeof *from);
        }
    }
}

static bool is_one(const tr_attention_sizes *s) {
    return s->batch * s->context == 1;
}

static int threads_of(const work *w, int threads) {
    const tr_attention_sizes *s = &w->sizes.now;
    int64_t last = w->sizes.position + s->context;
    int64_t seen = tr__min_i64(last, w->sizes.window);
    double moved = (double)(s->batch * s->context * s->width) * (double)seen;
    return tr__threads_worth(moved / TR_GRAIN, threads);
}

static void launch_cached(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    work w = {.sizes = tr__attention_cached_sizes(desc, launch),
              .qkv = launch->in[0],
              .cache = launch->out[1],
              .y = launch->out[0],
              .space = launch->workspace,
              .threads = desc->target.workers};
    if (!tr__attention_cached_fits(&w.sizes, launch)) {
        return;
    }
    int threads = threads_of(&w, desc->target.workers);
    append(&w);
    if (is_one(&w.sizes.now)) {
        run_one(&w, threads);
    } else {
        tr__parts_run(threads, run_queries, &w);
    }
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_attention_sizes s = tr__attention_sizes(desc->in[0].shape, desc->attr);
    int64_t most = chunks_most(desc->in[1].shape.dim[2]);
    int64_t floats = desc->target.workers * thread_floats(&s);
    floats += is_one(&s) ? s.heads * most * part_floats(&s) : 0;
    return (size_t)floats * sizeof(float);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

const tr_kernel TR_ISA_NAME(tr__attention_cached_kernel) = {
    .name = "attention_cached.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__attention_cached_cost,
    .workspace = workspace,
    .launch = launch_cached,
};
