// Backward, tile by tile: Dao et al., arXiv 2205.14135, algorithm 4. The probabilities
// come back from the scores and lse; a tile of keys stays, the queries go by, and dq is
// summed in the workspace. Tiles of keys go from the last to the first, so that a task
// (cut.h) costs more than the one before it.
#include "backend/cpu/cell.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/real.h"
#include "ops/attention/cut.h"
#include "ops/attention/pack.h"
#include "ops/attention/tile_mask.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__attention_backward_kernel);

// One thread's part of the workspace; D' is the padded depth, S' the context padded to
// whole tiles.
typedef struct space {
    tr_cell *q_rows, *q_steps;   // [S', D']
    tr_cell *dy_rows, *dy_steps; // [S', D']
    float *dq[2];                // [S', D']; 0: of a head that another thread began
    tr_cell *k_rows, *k_steps;   // [TR_TILE, D']
    tr_cell *k_turned;           // [D', TR_TILE] as steps
    tr_cell *v_turned;           // [D', TR_TILE] as steps
    float *dk, *dv;              // [TR_TILE, D']
    float *p, *dp;               // [TR_TILE, TR_TILE]
    float *lse, *delta;          // [S']: lse times log2(e), row sums of dy * y
} space;

// One head of one sample.
typedef struct head {
    const tr_attention_sizes *sizes;
    const tr_real *qkv;    // the head's columns of q: [S, 3 C]
    const tr_real *dy, *y; // the head's columns: [S, C]
    const float *lse;      // [S]
    float scale;           // what makes scores powers of 2
    tr_real *dqkv;         // as qkv
    bool add;              // to dqkv
    float *dq;             // where its dq is summed
    tr_draw draw;
    int64_t index;  // of the head in its sample
    int64_t first;  // the first key tile that this thread takes (the highest)
    int64_t packed; // query tiles from here on are packed
} head;

static int64_t tile_floats(const tr_attention_sizes *s) {
    return TR_TILE * tr_v_padded(s->depth);
}

static int64_t all_floats(const tr_attention_sizes *s) {
    return tr__ceil_div(s->context, TR_TILE) * tile_floats(s);
}

static int64_t space_floats(const tr_attention_sizes *s) {
    return 4 * all_floats(s) + 5 * tile_floats(s) + 2 * tr_v_tile_floats() +
           2 * tr__round_up(s->context, TR_TILE);
}

// A matrix of `floats` numbers as steps, where its rows are at `rows`.
static tr_cell *steps_beside(float *rows, int64_t floats) {
    return (tr_cell *)(TR_CELL_STEPS == 1 ? rows : rows + floats / TR_CELL_STEPS);
}

static space space_at(const tr_attention_sizes *s, float *workspace, int piece) {
    int64_t all = all_floats(s), tile = tile_floats(s);
    float *base = workspace + piece * space_floats(s);
    float *tiles = base + 4 * all, *squares = tiles + 5 * tile;
    float *rows = squares + 2 * tr_v_tile_floats();
    return (space){
        .q_rows = (tr_cell *)base,
        .q_steps = steps_beside(base, all),
        .dy_rows = (tr_cell *)(base + all),
        .dy_steps = steps_beside(base + all, all),
        .dq = {base + 2 * all, base + 3 * all},
        .k_rows = (tr_cell *)tiles,
        .k_steps = steps_beside(tiles, tile),
        .k_turned = (tr_cell *)(tiles + tile),
        .v_turned = (tr_cell *)(tiles + 2 * tile),
        .dk = tiles + 3 * tile,
        .dv = tiles + 4 * tile,
        .p = squares,
        .dp = squares + tr_v_tile_floats(),
        .lse = rows,
        .delta = rows + tr__round_up(s->context, TR_TILE),
    };
}

// a . b, both [depth].
static float dot(const tr_real *a, const tr_real *b, int64_t depth) {
    tr_vf sum = tr_v_set(0);
    int64_t d = 0;
    for (; d + TR_VW <= depth; d += TR_VW) {
        sum += tr_v_load_r(a + d) * tr_v_load_r(b + d);
    }
    int rest = (int)(depth - d);
    if (rest > 0) {
        sum += tr_v_load_part_r(a + d, rest, 0) * tr_v_load_part_r(b + d, rest, 0);
    }
    return tr_v_sum(sum);
}

// Packs query tiles down to tile `last`.
static void pack_queries(head *h, int64_t last, const space *m) {
    const tr_attention_sizes *s = h->sizes;
    int64_t row = tr_v_row_cells(s->depth), pitch = 3 * s->width;
    while (h->packed > last) {
        int64_t first = --h->packed * TR_TILE;
        int64_t rows = tr__min_i64(TR_TILE, s->context - first);
        int64_t padded = tr__round_up(rows, TR_STRIP);
        const tr_real *dy = h->dy + first * s->width, *y = h->y + first * s->width;
        tr_v_pack_both(h->qkv + first * pitch, pitch, rows, s->depth, padded,
                       m->q_rows + first * row, m->q_steps + first * row);
        tr_v_pack_both(dy, s->width, rows, s->depth, padded, m->dy_rows + first * row,
                       m->dy_steps + first * row);
        for (int64_t r = 0; r < rows; r++) {
            m->lse[first + r] = h->lse[first + r] * 1.44269504088896341f;
            m->delta[first + r] = dot(dy + r * s->width, y + r * s->width, s->depth);
        }
    }
}

// Packs the tile of keys and values from `key`. Uses dk.
static void pack_keys(const head *h, int64_t key, const space *m) {
    const tr_attention_sizes *s = h->sizes;
    int64_t row = tr_v_row_cells(s->depth), pitch = 3 * s->width;
    int64_t keys = tr__min_i64(TR_TILE, s->context - key);
    int64_t padded = tr__round_up(keys, TR_DRAW_LANES);
    const tr_real *k = h->qkv + key * pitch + s->width;
    tr_cell *v_rows = (tr_cell *)m->dk;
    tr_v_pack_both(k, pitch, keys, s->depth, padded, m->k_rows, m->k_steps);
    tr_v_transpose(m->k_rows, padded, row, m->k_turned);
    tr_v_pack_rows(k + s->width, pitch, keys, s->depth, padded, v_rows);
    tr_v_transpose(v_rows, padded, row, m->v_turned);
}

// What the gradients of a row of scores need, beside them: as in `head` and `space`.
typedef struct row_sums {
    float scale, lse, delta;
} row_sums;

typedef struct pair {
    tr_vf kept, score; // the probability times its multiplier; the score's gradient
} pair;

__attribute__((always_inline)) static inline pair
pair_gradient(const float *score, const float *dp, const row_sums *sums,
              const tr_strip_mask *mask, int64_t row, int64_t column) {
    tr_vf p = tr_v_exp2(tr_v_load(score + column) * sums->scale - sums->lse);
    tr_vf through = tr_v_load(dp + column);
    if (mask) {
        tr_vf multiplier = tr_v_mask(mask, row, column);
        return (pair){p * multiplier, p * (through * multiplier - sums->delta)};
    }
    return (pair){p, p * (through - sums->delta)};
}

// Row `row` of a strip: scores and gradients of the probabilities in, kept
// probabilities and gradients of the scores out; zeros from `seen` to `width`.
__attribute__((always_inline)) static inline void
row_gradients(float *score, float *dp, const row_sums *sums, int64_t seen,
              int64_t width, const tr_strip_mask *mask, int64_t row) {
    int64_t j = 0;
    for (; j + TR_VW <= seen; j += TR_VW) {
        pair g = pair_gradient(score, dp, sums, mask, row, j);
        tr_v_store(score + j, g.kept);
        tr_v_store(dp + j, g.score);
    }
    if (j < seen) {
        pair g = pair_gradient(score, dp, sums, mask, row, j);
        tr_v_store(score + j, tr_v_first(g.kept, seen - j, 0));
        tr_v_store(dp + j, tr_v_first(g.score, seen - j, 0));
        j += TR_VW;
    }
    for (; j < width; j += TR_VW) {
        tr_v_store(score + j, tr_v_set(0));
        tr_v_store(dp + j, tr_v_set(0));
    }
}

// What products read of the strip from row i.
static void strip_cells(const space *m, int64_t i, int64_t width) {
    const float *p = m->p + i * TR_TILE, *dp = m->dp + i * TR_TILE;
    int64_t cells = i * TR_TILE / TR_CELL_STEPS;
    tr_v_narrow_steps(p, width, tr_v_tile_steps(m->p) + cells);
    tr_v_narrow_steps(dp, width, tr_v_tile_steps(m->dp) + cells);
    tr_v_narrow_rows(dp, width, tr_v_tile_rows(m->dp) + cells);
}

// The same for a tile. Rows past `rows` of the last strip become zero.
__attribute__((always_inline)) static inline void
tile_gradients(const head *h, int64_t query, int64_t rows, int64_t key, int64_t keys,
               bool dropout, const space *m) {
    int64_t diagonal = query - key;
    tr_strip_mask mask;
    for (int64_t i = 0; i < rows; i += TR_STRIP) {
        int64_t width = tr__min_i64(keys, diagonal + i + TR_STRIP);
        if (dropout) {
            tr_v_draw_strip(h->sizes, &h->draw, h->index, query + i, key, width, &mask);
        }
        for (int64_t r = i; r < i + TR_STRIP; r++) {
            row_sums sums = {.scale = h->scale};
            int64_t seen = 0;
            if (r < rows) {
                seen = tr__min_i64(keys, diagonal + r + 1);
                sums.lse = m->lse[query + r];
                sums.delta = m->delta[query + r];
            }
            row_gradients(m->p + r * TR_TILE, m->dp + r * TR_TILE, &sums, seen, width,
                          dropout ? &mask : NULL, r - i);
        }
        strip_cells(m, i, width);
    }
}

// Scores and gradients of the probabilities, then both by tile_gradients.
static void find_gradients(const head *h, int64_t query, int64_t key, const space *m) {
    const tr_attention_sizes *s = h->sizes;
    int64_t row = tr_v_row_cells(s->depth);
    int64_t rows = tr__min_i64(TR_TILE, s->context - query);
    int64_t padded = tr__round_up(rows, TR_STRIP);
    int64_t keys = tr__round_up(tr__min_i64(TR_TILE, s->context - key), TR_DRAW_LANES);
    tr_product scores = {.a = m->q_rows + query * row,
                         .a_row = row,
                         .a_step = 1,
                         .b = m->k_turned,
                         .b_row = TR_TILE,
                         .c = m->p,
                         .c_row = TR_TILE};
    tr_v_product(&scores, padded, keys, s->depth, TR_CAUSAL_SCORES, query - key);
    tr_product through = scores;
    through.a = m->dy_rows + query * row;
    through.b = m->v_turned;
    through.c = m->dp;
    tr_v_product(&through, padded, keys, s->depth, TR_CAUSAL_SCORES, query - key);
    if (s->dropout > 0) {
        tile_gradients(h, query, rows, key, keys, true, m);
    } else {
        tile_gradients(h, query, rows, key, keys, false, m);
    }
}

// Adds what the tile of queries from `query` gives the tile of keys from `key` to dk
// and dv, and what it gets from it to dq.
static void add_gradients(const head *h, int64_t query, int64_t key, const space *m) {
    const tr_attention_sizes *s = h->sizes;
    int64_t row = tr_v_row_cells(s->depth), width = tr_v_padded(s->depth);
    int64_t diagonal = query - key;
    int64_t rows = tr__round_up(tr__min_i64(TR_TILE, s->context - query), TR_STRIP);
    int64_t keys = tr__round_up(tr__min_i64(TR_TILE, s->context - key), TR_DRAW_LANES);
    tr_product to_v = {.a = tr_v_tile_steps(m->p),
                       .a_row = 1,
                       .a_step = TR_TILE,
                       .b = m->dy_steps + query * row,
                       .b_row = width,
                       .c = m->dv,
                       .c_row = width,
                       .add = query > key};
    tr_v_product(&to_v, keys, width, rows, TR_CAUSAL_KEYS, diagonal);
    tr_product to_k = to_v;
    to_k.a = tr_v_tile_steps(m->dp);
    to_k.b = m->q_steps + query * row;
    to_k.c = m->dk;
    tr_v_product(&to_k, keys, width, rows, TR_CAUSAL_KEYS, diagonal);
    tr_product to_q = {.a = tr_v_tile_rows(m->dp),
                       .a_row = TR_TILE / TR_CELL_STEPS,
                       .a_step = 1,
                       .b = m->k_steps,
                       .b_row = width,
                       .c = h->dq + query * width,
                       .c_row = width,
                       .add = query > key && key < h->first * TR_TILE};
    tr_v_product(&to_q, rows, width, keys, TR_CAUSAL_QUERIES, diagonal);
}

// dk and dv of key tile `tile`, and its part of dq.
static void run_keys(head *h, int64_t tile, const space *m) {
    const tr_attention_sizes *s = h->sizes;
    int64_t key = tile * TR_TILE, keys = tr__min_i64(TR_TILE, s->context - key);
    pack_queries(h, tile, m);
    pack_keys(h, key, m);
    for (int64_t query = key; query < s->context; query += TR_TILE) {
        find_gradients(h, query, key, m);
        add_gradients(h, query, key, m);
    }
    tr_real *dk = h->dqkv + key * 3 * s->width + s->width;
    float scale = (float)(1 / sqrt((double)s->depth));
    tr_v_unpack(m->dk, keys, s->depth, scale, h->add, 3 * s->width, dk);
    tr_v_unpack(m->dv, keys, s->depth, 1, h->add, 3 * s->width, dk + s->width);
}

static void write_dq(const tr_attention_sizes *s, const float *dq, bool add,
                     tr_real *dqkv) {
    float scale = (float)(1 / sqrt((double)s->depth));
    tr_v_unpack(dq, s->context, s->depth, scale, add, 3 * s->width, dqkv);
}

// Head `index` of all samples' heads, begun by a thread at key tile `first`.
static head head_at(const tr_attention_sizes *s, const tr_launch *launch, int64_t index,
                    int64_t tiles, int64_t first, const space *m) {
    int64_t row = index / s->heads, column = index % s->heads * s->depth;
    int64_t place = row * s->context * s->width;
    return (head){
        .sizes = s,
        .dy = (const tr_real *)launch->in[0] + place + column,
        .qkv = (const tr_real *)launch->in[1] + 3 * place + column,
        .y = (const tr_real *)launch->in[2] + place + column,
        .lse = (const float *)launch->in[3] + index * s->context,
        .scale = tr__attention_scale(s),
        .dqkv = (tr_real *)launch->out[0] + 3 * place + column,
        .add = launch->accumulate & 1,
        .dq = m->dq[first == tiles - 1],
        .draw = tr__draw_open(launch->run, row, s->draw_id, s->dropout),
        .index = index % s->heads,
        .first = first,
        .packed = tiles,
    };
}

static void run_piece(const tr_attention_sizes *s, const tr_launch *launch,
                      const tr_attention_cut *cut, int piece) {
    space m = space_at(s, launch->workspace, piece);
    int64_t begin = tr__attention_start(cut, piece);
    int64_t end = tr__attention_start(cut, piece + 1);
    head h = {0};
    for (int64_t task = begin; task < end; task++) {
        int64_t tile = cut->tiles - 1 - task % cut->tiles;
        if (task == begin || tile == cut->tiles - 1) {
            h = head_at(s, launch, task / cut->tiles, cut->tiles, tile, &m);
        }
        run_keys(&h, tile, &m);
        if (tile == 0 && h.first == cut->tiles - 1) {
            write_dq(s, h.dq, h.add, h.dqkv);
        }
    }
}

// Sums dq of the head that is cut first at the start of `piece`, and writes it. The
// last of its pieces has summed all rows, the ones before it rows from some tile on.
static void join_head(const tr_attention_sizes *s, const tr_launch *launch,
                      const tr_attention_cut *cut, int piece) {
    int64_t index = tr__attention_start(cut, piece) / cut->tiles;
    int64_t begin = index * cut->tiles, end = begin + cut->tiles;
    int last = piece;
    while (tr__attention_start(cut, last + 1) < end) {
        last++;
    }
    float *sum = space_at(s, launch->workspace, last).dq[0];
    for (int p = piece - 1; p < last; p++) {
        int64_t stop = tr__attention_start(cut, p + 1);
        if (stop == tr__attention_start(cut, p)) {
            continue;
        }
        const float *part = space_at(s, launch->workspace, p).dq[p < piece];
        int64_t width = tr_v_padded(s->depth);
        int64_t i = (end - stop) * TR_TILE * width;
        for (; i < s->context * width; i += TR_VW) {
            tr_v_store(sum + i, tr_v_load(sum + i) + tr_v_load(part + i));
        }
    }
    head h = head_at(s, launch, index, cut->tiles, 0, &(space){0});
    write_dq(s, sum, h.add, h.dqkv);
}

// Is the start of `piece` the first cut inside a head?
static bool cuts_head(const tr_attention_cut *cut, int piece) {
    int64_t start = tr__attention_start(cut, piece);
    int64_t begin = start / cut->tiles * cut->tiles;
    return start > begin && tr__attention_start(cut, piece - 1) <= begin;
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_attention_sizes s = tr__attention_sizes(desc->in[1].shape, desc->attr);
    tr_attention_cut cut = tr__attention_cut(&s, TR_TILE, desc->threads);
    return (size_t)(cut.pieces * space_floats(&s)) * sizeof(float);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_attention_sizes s = tr__attention_sizes(desc->in[1].shape, desc->attr);
    tr_attention_cut cut = tr__attention_cut(&s, TR_TILE, desc->threads);
#pragma omp parallel num_threads(cut.threads) if (cut.pieces > 1)
    {
#pragma omp for schedule(static)
        for (int piece = 0; piece < cut.pieces; piece++) {
            run_piece(&s, launch, &cut, piece);
        }
#pragma omp for schedule(static)
        for (int piece = 1; piece < cut.pieces; piece++) {
            if (cuts_head(&cut, piece)) {
                join_head(&s, launch, &cut, piece);
            }
        }
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr_cells_run() && tr__desc_real(desc, TR_REAL, 1 << 3, 0); // lse
}

const tr_kernel TR_ISA_NAME(tr__attention_backward_kernel) = {
    .name = "attention_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__attention_backward_cost,
    .workspace = workspace,
    .launch = launch_backward,
};
