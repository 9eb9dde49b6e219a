// Forward, tile by tile: Dao et al., arXiv 2205.14135, algorithm 1, with the loops
// exchanged (a tile of queries stays, the keys go by). Exponentials are powers of 2: a
// score is multiplied with log2(e) / sqrt(D) where it becomes one.
#include "backend/cpu/isa.h"
#include "backend/cpu/pair.h"
#include "backend/cpu/real.h"
#include "ops/nn/attention/cpu_cut.h"
#include "ops/nn/attention/cpu_pack.h"
#include "ops/nn/attention/cpu_tile_mask.h"
#include "ops/nn/positions.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__attention_kernel);

// Below every score, and finite: a row may see nothing of the first tile of its window.
#define NOTHING (-1e38f)
// A highest score that is not above this is of infinities alone.
#define LOWEST (-1e30f)

// One thread's part of the workspace; D' is the padded depth, S' the context padded to
// whole tiles.
typedef struct space {
    tr_pair *k;     // [tiles] of [D', TR_TILE] as steps: each tile of keys transposed
    tr_pair *v;     // [S', D'] as steps
    tr_pair *q;     // [TR_TILE, D'] as rows
    float *o;       // [TR_TILE, D']
    float *p;       // [TR_TILE, TR_TILE]
    tr_pair *p_row; // p as rows
} space;

// The running softmax of a tile of queries (TR_TILE rows).
typedef struct softmax {
    float top[TR_TILE];   // highest score so far
    float scale[TR_TILE]; // what the sums so far are multiplied with
    tr_vf sum[TR_TILE];   // sums of powers, by lanes
} softmax;

// One head of one sample.
typedef struct head {
    const tr_attention_sizes *sizes;
    const tr_real *q; // the head's columns of qkv: [S, D], rows `pitch` apart
    const tr_real *k, *v;
    float scale; // what makes scores powers of 2
    tr_draw draw;
    int64_t index;  // of the head in its sample
    int64_t packed; // tiles of keys and values packed so far
} head;

static int64_t space_floats(const tr_attention_sizes *s) {
    int64_t row = tr_v_row_pairs(s->depth), width = tr_v_padded(s->depth);
    int64_t rows = tr__round_up(s->context, TR_TILE);
    return 2 * rows * row + TR_TILE * (row + width) + tr_v_tile_floats();
}

static space space_at(const tr_attention_sizes *s, float *base) {
    int64_t row = tr_v_row_pairs(s->depth), width = tr_v_padded(s->depth);
    int64_t all = tr__round_up(s->context, TR_TILE) * row;
    float *q = base + 2 * all, *o = q + TR_TILE * row, *p = o + TR_TILE * width;
    return (space){
        .k = (tr_pair *)base,
        .v = (tr_pair *)(base + all),
        .q = (tr_pair *)q,
        .o = o,
        .p = p,
        .p_row = tr_v_tile_rows(p),
    };
}

// Packs key and value tiles up to tile `last`. Uses o.
static void pack_keys(head *h, int64_t last, const space *m) {
    const tr_attention_sizes *s = h->sizes;
    int64_t row = tr_v_row_pairs(s->depth);
    tr_pair *rows = (tr_pair *)m->o;
    for (; h->packed <= last; h->packed++) {
        int64_t first = h->packed * TR_TILE;
        int64_t keys = tr__min_i64(TR_TILE, s->context - first);
        int64_t padded = tr__round_up(keys, TR_DRAW_LANES);
        tr_v_pack_rows(h->k + first * s->pitch, s->pitch, keys, s->depth, padded, rows);
        tr_v_transpose(rows, padded, row, m->k + first * row);
        tr_v_pack_steps(h->v + first * s->pitch, s->pitch, keys, s->depth, padded,
                        m->v + first * row);
    }
}

// The highest of the scores of a row that are seen; NOTHING where none is.
static float row_top(const float *score, tr_seen seen) {
    tr_vf top = tr_v_set(NOTHING);
    for (int64_t j = tr_v_begin(seen); j < seen.end; j += TR_VW) {
        tr_vf v = tr_v_load(score + j);
        top =
            tr_v_max(top, tr_v_sees_all(seen, j)
                              ? v
                              : tr_v_between(v, seen.first - j, seen.end - j, NOTHING));
    }
    return tr_v_top(top);
}

// Takes the highest scores of `rows` queries and `keys` keys into account.
static void raise_tops(const head *h, softmax *soft, int64_t query, int64_t rows,
                       int64_t key, int64_t keys, const float *p) {
    float top[TR_TILE];
    for (int64_t r = 0; r < tr__round_up(rows, TR_VW); r++) {
        tr_seen seen = tr_v_seen(h->sizes, query + r, key, r < rows ? keys : 0);
        top[r] = row_top(p + r * TR_TILE, seen) * h->scale;
    }
    for (int64_t r = 0; r < rows; r += TR_VW) {
        tr_vf old = tr_v_load(soft->top + r);
        tr_vf new = tr_v_max(tr_v_load(top + r), old);
        tr_v_store(soft->scale + r, tr_v_exp2(old - new));
        tr_v_store(soft->top + r, new);
    }
}

// Scores to powers of 2: zeros where nothing is seen, up to `width`. mask: NULL, or the
// strip's, of which this is row `row`. Returns the sums of the powers, by lanes.
__attribute__((always_inline)) static inline tr_vf
row_powers(float *p, float scale, float top, tr_seen seen, int64_t width,
           const tr_strip_mask *mask, int64_t row) {
    tr_vf sum = tr_v_set(0);
    int64_t begin = tr_v_begin(seen), j = 0;
    for (; j < begin; j += TR_VW) {
        tr_v_store(p + j, tr_v_set(0));
    }
    for (; j < seen.end; j += TR_VW) {
        tr_vf e = tr_v_exp2(tr_v_load(p + j) * scale - top);
        if (!tr_v_sees_all(seen, j)) {
            e = tr_v_between(e, seen.first - j, seen.end - j, 0);
        }
        sum += e;
        tr_v_store(p + j, mask ? e * tr_v_mask(mask, row, j) : e);
    }
    for (; j < width; j += TR_VW) {
        tr_v_store(p + j, tr_v_set(0));
    }
    return sum;
}

// Turns the scores of a tile into its part of the softmax. Rows past `rows` of the last
// strip become zero.
__attribute__((always_inline)) static inline void
tile_powers(const head *h, softmax *soft, int64_t query, int64_t rows, int64_t key,
            int64_t keys, bool dropout, const space *m) {
    int64_t diagonal = tr_v_diagonal(h->sizes, query, key);
    tr_strip_mask mask;
    for (int64_t i = 0; i < rows; i += TR_STRIP) {
        int64_t width = tr__min_i64(keys, diagonal + i + TR_STRIP);
        if (dropout) {
            tr_v_draw_strip(h->sizes, &h->draw, h->index, query + i, key, width, &mask);
        }
        for (int64_t r = i; r < i + TR_STRIP; r++) {
            tr_seen seen = tr_v_seen(h->sizes, query + r, key, r < rows ? keys : 0);
            tr_vf sum = row_powers(m->p + r * TR_TILE, h->scale, soft->top[r], seen,
                                   width, dropout ? &mask : NULL, r - i);
            soft->sum[r] = soft->sum[r] * soft->scale[r] + sum;
        }
        tr_v_narrow_rows(m->p + i * TR_TILE, width,
                         m->p_row + i * TR_TILE / TR_PAIR_STEPS);
    }
}

static void scale_rows(const softmax *soft, int64_t rows, int64_t width, float *o) {
    for (int64_t r = 0; r < rows; r++) {
        if (soft->scale[r] == 1) {
            continue;
        }
        for (int64_t d = 0; d < width; d += TR_VW) {
            float *at = o + r * width + d;
            tr_v_store(at, tr_v_load(at) * soft->scale[r]);
        }
    }
}

// Adds the tile of keys from `key` to the tile of queries from `query`, of which it is
// the first or not.
static void add_keys(const head *h, softmax *soft, int64_t query, int64_t key,
                     bool first, const space *m) {
    const tr_attention_sizes *s = h->sizes;
    int64_t row = tr_v_row_pairs(s->depth), width = tr_v_padded(s->depth);
    int64_t rows = tr__min_i64(TR_TILE, s->context - query);
    int64_t padded = tr__round_up(rows, TR_STRIP);
    int64_t keys = tr__min_i64(TR_TILE, s->context - key);
    int64_t columns = tr__round_up(keys, TR_DRAW_LANES);
    tr_product scores = {.a = m->q,
                         .a_row = row,
                         .a_step = 1,
                         .b = m->k + key * row,
                         .b_row = TR_TILE,
                         .c = m->p,
                         .c_row = TR_TILE};
    int64_t diagonal = tr_v_diagonal(s, query, key);
    tr_v_product(&scores, padded, columns, s->depth, TR_CAUSAL_SCORES, diagonal);
    raise_tops(h, soft, query, rows, key, keys, m->p);
    if (s->dropout > 0) {
        tile_powers(h, soft, query, rows, key, columns, true, m);
    } else {
        tile_powers(h, soft, query, rows, key, columns, false, m);
    }
    if (!first) {
        scale_rows(soft, rows, width, m->o);
    }
    tr_product values = {.a = m->p_row,
                         .a_row = TR_TILE / TR_PAIR_STEPS,
                         .a_step = 1,
                         .b = m->v + key * row,
                         .b_row = width,
                         .c = m->o,
                         .c_row = width,
                         .add = !first};
    tr_v_product(&values, padded, width, columns, TR_CAUSAL_QUERIES, diagonal);
}

// y: [S, C] and lse: [S] of the head, from the tile's first row on.
static void write_rows(const head *h, softmax *soft, int64_t rows, const space *m,
                       uint32_t accumulate, tr_real *y, float *lse) {
    const tr_attention_sizes *s = h->sizes;
    int64_t width = tr_v_padded(s->depth);
    for (int64_t r = 0; r < rows; r++) {
        float sum = soft->top[r] > LOWEST ? tr_v_sum(soft->sum[r]) : NAN;
        tr_v_unpack(m->o + r * width, 1, s->depth, 1 / sum, accumulate & 1, s->width,
                    y + r * s->width);
        if (lse) {
            float value = (soft->top[r] + log2f(sum)) * 0.693147180559945309f;
            lse[r] = accumulate & 2 ? lse[r] + value : value;
        }
    }
}

static void run_queries(head *h, int64_t query, const space *m, uint32_t accumulate,
                        tr_real *y, float *lse) {
    const tr_attention_sizes *s = h->sizes;
    int64_t rows = tr__min_i64(TR_TILE, s->context - query);
    int64_t oldest = tr__attention_oldest(s, query) / TR_TILE * TR_TILE;
    int64_t end = tr__attention_key_end(s, query + rows - 1);
    softmax soft;
    for (int64_t r = 0; r < TR_TILE; r++) {
        soft.top[r] = NOTHING;
        soft.sum[r] = tr_v_set(0);
    }
    pack_keys(h, (end - 1) / TR_TILE, m);
    tr_v_pack_rows(h->q + query * s->pitch, s->pitch, rows, s->depth,
                   tr__round_up(rows, TR_STRIP), m->q);
    for (int64_t key = oldest; key < end; key += TR_TILE) {
        add_keys(h, &soft, query, key, key == oldest, m);
    }
    write_rows(h, &soft, rows, m, accumulate, y + query * s->width,
               lse ? lse + query : NULL);
}

// Head `index` of sample `row`, of which nothing is packed.
static head head_at(const tr_attention_sizes *s, const tr_launch *launch, int64_t row,
                    int64_t index) {
    const tr_real *qkv = launch->in[0]; // [B, S, pitch]
    const tr_real *first = qkv + row * s->context * s->pitch;
    int64_t shared = index / s->group * s->depth;
    return (head){
        .sizes = s,
        .q = first + index * s->depth,
        .k = first + s->keys + shared,
        .v = first + s->values + shared,
        .scale = tr__attention_scale(s),
        .draw = tr__draw_open(launch->run, row, s->draw_id, s->dropout),
        .index = index,
    };
}

static void run_piece(const tr_attention_sizes *s, const int32_t *positions,
                      const tr_launch *launch, const tr_attention_cut *cut, int piece) {
    tr_real *y = launch->out[0]; // [B, S, C]
    float *lse = launch->out[1]; // [B, heads, S] or NULL
    space m = space_at(s, (float *)launch->workspace + piece * space_floats(s));
    int64_t end = tr__attention_start(cut, piece + 1);
    tr_attention_sizes sample = *s;
    head h = {.k = NULL};
    for (int64_t task = tr__attention_start(cut, piece); task < end; task++) {
        int64_t pair = task / cut->tiles, tile = task % cut->tiles;
        int64_t row = pair / s->heads, index = pair % s->heads;
        int64_t first = row * s->context * s->width + index * s->depth;
        if (!h.k || tile == 0) {
            sample = tr__attention_of(s, positions, row);
            head next = head_at(&sample, launch, row, index);
            next.packed = next.k == h.k ? h.packed : 0; // shared by its group
            h = next;
        }
        run_queries(&h, tile * TR_TILE, &m, launch->accumulate, y + first,
                    lse ? lse + pair * s->context : NULL);
    }
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_attention_sizes s = tr__attention_sizes(desc->in[0].shape, desc->attr);
    tr_attention_cut cut =
        tr__attention_cut(&s, s.heads, TR_TILE, desc->target.workers);
    return (size_t)(cut.pieces * space_floats(&s)) * sizeof(float);
}

static void launch_attention(const tr_op_desc *desc, void *state,
                             const tr_launch *launch) {
    (void)state;
    tr_attention_sizes s = tr__attention_sizes(desc->in[0].shape, desc->attr);
    tr_attention_cut cut =
        tr__attention_cut(&s, s.heads, TR_TILE, desc->target.workers);
    const int32_t *positions = tr__launch_positions(desc, launch, 1); // [B, S]
#pragma omp parallel for schedule(static) num_threads(cut.threads) if (cut.pieces > 1)
    for (int piece = 0; piece < cut.pieces; piece++) {
        run_piece(&s, positions, launch, &cut, piece);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr_pairs_run() && tr__desc_real(desc, TR_REAL, 0, 1 << 1); // lse
}

const tr_kernel TR_ISA_NAME(tr__attention_kernel) = {
    .name = "attention.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__attention_cost,
    .workspace = workspace,
    .launch = launch_attention,
};
