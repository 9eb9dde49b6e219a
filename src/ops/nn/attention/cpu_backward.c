// Backward, tile by tile: Dao et al., arXiv 2205.14135, algorithm 4. The probabilities
// come back from the scores and lse; a tile of keys stays, the queries of all heads
// that share it go by, and dq is summed in the workspace. Tiles of keys go from the
// last to the first, so that a task (cut.h) costs more than the one before it.
#include "backend/cpu/isa.h"
#include "backend/cpu/pair.h"
#include "backend/cpu/real.h"
#include "ops/nn/attention/cpu_cut.h"
#include "ops/nn/attention/cpu_pack.h"
#include "ops/nn/attention/cpu_tile_mask.h"
#include "ops/nn/positions.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__attention_backward_kernel);

// One thread's part of the workspace; D' is the padded depth, S' the context padded to
// whole tiles, G the heads of queries that share one of keys.
typedef struct space {
    tr_pair *q_rows, *q_steps;   // [G, S', D']
    tr_pair *dy_rows, *dy_steps; // [G, S', D']
    float *dq[2];                // [G, S', D']; 0: of a group that another thread began
    tr_pair *k_rows, *k_steps;   // [TR_TILE, D']
    tr_pair *k_turned;           // [D', TR_TILE] as steps
    tr_pair *v_turned;           // [D', TR_TILE] as steps
    float *dk, *dv;              // [TR_TILE, D']
    float *p, *dp;               // [TR_TILE, TR_TILE]
    float *lse, *delta;          // [G, S']: lse times log2(e), row sums of dy * y
} space;

// The heads of one sample that share one of keys and values.
typedef struct group {
    const tr_attention_sizes *sizes;
    const tr_real *q, *k, *v; // the first head's columns of qkv: rows `pitch` apart
    const tr_real *dy, *y;    // the first head's columns: [S, C]
    const float *lse;         // [G, S]
    float scale;              // what makes scores powers of 2
    tr_real *dq, *dk, *dv;    // as q, k, v
    bool add;                 // to these
    float *sums;              // where dq is summed, [G, S', D']
    tr_draw draw;
    int64_t index;  // of the first head in its sample
    int64_t first;  // the first key tile that this thread takes (the highest)
    int64_t packed; // query tiles from here on are packed
} group;

// A head of a group: where its packed queries, their gradients and its sums begin.
typedef struct head {
    const group *of;
    int64_t index; // in its sample
    tr_pair *q_rows, *q_steps, *dy_rows, *dy_steps;
    float *lse, *delta;
    float *dq; // where its dq is summed
} head;

static int64_t tile_floats(const tr_attention_sizes *s) {
    return TR_TILE * tr_v_padded(s->depth);
}

// Of all queries of a head.
static int64_t head_floats(const tr_attention_sizes *s) {
    return tr__ceil_div(s->context, TR_TILE) * tile_floats(s);
}

static int64_t all_floats(const tr_attention_sizes *s) {
    return s->group * head_floats(s);
}

static int64_t space_floats(const tr_attention_sizes *s) {
    return 4 * all_floats(s) + 5 * tile_floats(s) + 2 * tr_v_tile_floats() +
           2 * s->group * tr__round_up(s->context, TR_TILE);
}

// A matrix of `floats` numbers as steps, where its rows are at `rows`.
static tr_pair *steps_beside(float *rows, int64_t floats) {
    return (tr_pair *)(TR_PAIR_STEPS == 1 ? rows : rows + floats / TR_PAIR_STEPS);
}

static space space_at(const tr_attention_sizes *s, float *workspace, int piece) {
    int64_t all = all_floats(s), tile = tile_floats(s);
    float *base = workspace + piece * space_floats(s);
    float *tiles = base + 4 * all, *squares = tiles + 5 * tile;
    float *rows = squares + 2 * tr_v_tile_floats();
    return (space){
        .q_rows = (tr_pair *)base,
        .q_steps = steps_beside(base, all),
        .dy_rows = (tr_pair *)(base + all),
        .dy_steps = steps_beside(base + all, all),
        .dq = {base + 2 * all, base + 3 * all},
        .k_rows = (tr_pair *)tiles,
        .k_steps = steps_beside(tiles, tile),
        .k_turned = (tr_pair *)(tiles + tile),
        .v_turned = (tr_pair *)(tiles + 2 * tile),
        .dk = tiles + 3 * tile,
        .dv = tiles + 4 * tile,
        .p = squares,
        .dp = squares + tr_v_tile_floats(),
        .lse = rows,
        .delta = rows + s->group * tr__round_up(s->context, TR_TILE),
    };
}

// Head `member` of the group.
static head head_of(const group *of, int64_t member, const space *m) {
    const tr_attention_sizes *s = of->sizes;
    int64_t rows = tr__round_up(s->context, TR_TILE);
    int64_t pairs = member * rows * tr_v_row_pairs(s->depth);
    return (head){
        .of = of,
        .index = of->index + member,
        .q_rows = m->q_rows + pairs,
        .q_steps = m->q_steps + pairs,
        .dy_rows = m->dy_rows + pairs,
        .dy_steps = m->dy_steps + pairs,
        .lse = m->lse + member * rows,
        .delta = m->delta + member * rows,
        .dq = of->sums + member * head_floats(s),
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

// Packs a tile of queries from `first`, and of what their results' gradients are.
static void pack_tile(const group *of, int64_t member, int64_t first, const space *m) {
    const tr_attention_sizes *s = of->sizes;
    head h = head_of(of, member, m);
    int64_t row = tr_v_row_pairs(s->depth), column = member * s->depth;
    int64_t rows = tr__min_i64(TR_TILE, s->context - first);
    int64_t padded = tr__round_up(rows, TR_STRIP);
    const tr_real *dy = of->dy + first * s->width + column;
    const tr_real *y = of->y + first * s->width + column;
    const float *lse = of->lse + member * s->context;
    tr_v_pack_both(of->q + first * s->pitch + column, s->pitch, rows, s->depth, padded,
                   h.q_rows + first * row, h.q_steps + first * row);
    tr_v_pack_both(dy, s->width, rows, s->depth, padded, h.dy_rows + first * row,
                   h.dy_steps + first * row);
    for (int64_t r = 0; r < rows; r++) {
        h.lse[first + r] = lse[first + r] * 1.44269504088896341f;
        h.delta[first + r] = dot(dy + r * s->width, y + r * s->width, s->depth);
    }
}

// Packs query tiles down to tile `last`.
static void pack_queries(group *of, int64_t last, const space *m) {
    while (of->packed > last) {
        of->packed--;
        for (int64_t i = 0; i < of->sizes->group; i++) {
            pack_tile(of, i, of->packed * TR_TILE, m);
        }
    }
}

// Packs the tile of keys and values from `key`. Uses dk.
static void pack_keys(const group *of, int64_t key, const space *m) {
    const tr_attention_sizes *s = of->sizes;
    int64_t row = tr_v_row_pairs(s->depth), pitch = s->pitch;
    int64_t keys = tr__min_i64(TR_TILE, s->context - key);
    int64_t padded = tr__round_up(keys, TR_DRAW_LANES);
    tr_pair *v_rows = (tr_pair *)m->dk;
    tr_v_pack_both(of->k + key * pitch, pitch, keys, s->depth, padded, m->k_rows,
                   m->k_steps);
    tr_v_transpose(m->k_rows, padded, row, m->k_turned);
    tr_v_pack_rows(of->v + key * pitch, pitch, keys, s->depth, padded, v_rows);
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
// probabilities and gradients of the scores out; zeros where nothing is seen, up to
// `width`.
__attribute__((always_inline)) static inline void
row_gradients(float *score, float *dp, const row_sums *sums, tr_seen seen,
              int64_t width, const tr_strip_mask *mask, int64_t row) {
    int64_t begin = tr_v_begin(seen), j = 0;
    for (; j < begin; j += TR_VW) {
        tr_v_store(score + j, tr_v_set(0));
        tr_v_store(dp + j, tr_v_set(0));
    }
    for (; j < seen.end; j += TR_VW) {
        pair g = pair_gradient(score, dp, sums, mask, row, j);
        if (!tr_v_sees_all(seen, j)) {
            g.kept = tr_v_between(g.kept, seen.first - j, seen.end - j, 0);
            g.score = tr_v_between(g.score, seen.first - j, seen.end - j, 0);
        }
        tr_v_store(score + j, g.kept);
        tr_v_store(dp + j, g.score);
    }
    for (; j < width; j += TR_VW) {
        tr_v_store(score + j, tr_v_set(0));
        tr_v_store(dp + j, tr_v_set(0));
    }
}

// What products read of the strip from row i.
static void strip_pairs(const space *m, int64_t i, int64_t width) {
    const float *p = m->p + i * TR_TILE, *dp = m->dp + i * TR_TILE;
    int64_t pairs = i * TR_TILE / TR_PAIR_STEPS;
    tr_v_narrow_steps(p, width, tr_v_tile_steps(m->p) + pairs);
    tr_v_narrow_steps(dp, width, tr_v_tile_steps(m->dp) + pairs);
    tr_v_narrow_rows(dp, width, tr_v_tile_rows(m->dp) + pairs);
}

// The same for a tile. Rows past `rows` of the last strip become zero.
__attribute__((always_inline)) static inline void
tile_gradients(const head *h, int64_t query, int64_t rows, int64_t key, int64_t keys,
               bool dropout, const space *m) {
    const tr_attention_sizes *s = h->of->sizes;
    int64_t diagonal = tr_v_diagonal(s, query, key);
    tr_strip_mask mask;
    for (int64_t i = 0; i < rows; i += TR_STRIP) {
        int64_t width = tr__min_i64(keys, diagonal + i + TR_STRIP);
        if (dropout) {
            tr_v_draw_strip(s, &h->of->draw, h->index, query + i, key, width, &mask);
        }
        for (int64_t r = i; r < i + TR_STRIP; r++) {
            row_sums sums = {.scale = h->of->scale};
            tr_seen seen = {0, 0};
            if (r < rows) {
                seen = tr_v_seen(s, query + r, key, keys);
                sums.lse = h->lse[query + r];
                sums.delta = h->delta[query + r];
            }
            row_gradients(m->p + r * TR_TILE, m->dp + r * TR_TILE, &sums, seen, width,
                          dropout ? &mask : NULL, r - i);
        }
        strip_pairs(m, i, width);
    }
}

// Scores and gradients of the probabilities, then both by tile_gradients.
static void find_gradients(const head *h, int64_t query, int64_t key, const space *m) {
    const tr_attention_sizes *s = h->of->sizes;
    int64_t row = tr_v_row_pairs(s->depth);
    int64_t rows = tr__min_i64(TR_TILE, s->context - query);
    int64_t padded = tr__round_up(rows, TR_STRIP);
    int64_t keys = tr__round_up(tr__min_i64(TR_TILE, s->context - key), TR_DRAW_LANES);
    tr_product scores = {.a = h->q_rows + query * row,
                         .a_row = row,
                         .a_step = 1,
                         .b = m->k_turned,
                         .b_row = TR_TILE,
                         .c = m->p,
                         .c_row = TR_TILE};
    int64_t diagonal = tr_v_diagonal(s, query, key);
    tr_v_product(&scores, padded, keys, s->depth, TR_CAUSAL_SCORES, diagonal);
    tr_product through = scores;
    through.a = h->dy_rows + query * row;
    through.b = m->v_turned;
    through.c = m->dp;
    tr_v_product(&through, padded, keys, s->depth, TR_CAUSAL_SCORES, diagonal);
    if (s->dropout > 0) {
        tile_gradients(h, query, rows, key, keys, true, m);
    } else {
        tile_gradients(h, query, rows, key, keys, false, m);
    }
}

// Adds what the tile of queries from `query` gives the tile of keys from `key` to dk
// and dv (`first`: it is the first that gives them anything), and what it gets from it
// to dq.
static void add_gradients(const head *h, int64_t query, int64_t key, bool first,
                          const space *m) {
    const tr_attention_sizes *s = h->of->sizes;
    int64_t row = tr_v_row_pairs(s->depth), width = tr_v_padded(s->depth);
    int64_t diagonal = tr_v_diagonal(s, query, key);
    int64_t rows = tr__round_up(tr__min_i64(TR_TILE, s->context - query), TR_STRIP);
    int64_t keys = tr__round_up(tr__min_i64(TR_TILE, s->context - key), TR_DRAW_LANES);
    bool begun = tr__attention_masked(s) || // its sums begin with zeros
                 (query > key && key < h->of->first * TR_TILE);
    tr_product to_v = {.a = tr_v_tile_steps(m->p),
                       .a_row = 1,
                       .a_step = TR_TILE,
                       .b = h->dy_steps + query * row,
                       .b_row = width,
                       .c = m->dv,
                       .c_row = width,
                       .add = !first};
    tr_v_product(&to_v, keys, width, rows, TR_CAUSAL_KEYS, diagonal);
    tr_product to_k = to_v;
    to_k.a = tr_v_tile_steps(m->dp);
    to_k.b = h->q_steps + query * row;
    to_k.c = m->dk;
    tr_v_product(&to_k, keys, width, rows, TR_CAUSAL_KEYS, diagonal);
    tr_product to_q = {.a = tr_v_tile_rows(m->dp),
                       .a_row = TR_TILE / TR_PAIR_STEPS,
                       .a_step = 1,
                       .b = m->k_steps,
                       .b_row = width,
                       .c = h->dq + query * width,
                       .c_row = width,
                       .add = begun};
    tr_v_product(&to_q, rows, width, keys, TR_CAUSAL_QUERIES, diagonal);
}

// dk and dv of key tile `tile`, and its part of dq.
static void run_keys(group *of, int64_t tile, const space *m) {
    const tr_attention_sizes *s = of->sizes;
    int64_t key = tile * TR_TILE, keys = tr__min_i64(TR_TILE, s->context - key);
    int64_t end = tr__attention_newest(s, key + keys - 1);
    int64_t begin = tr__attention_first_query(s, key) / TR_TILE * TR_TILE;
    pack_queries(of, begin / TR_TILE, m);
    pack_keys(of, key, m);
    for (int64_t i = 0; i < s->group; i++) {
        head h = head_of(of, i, m);
        for (int64_t query = begin; query < end; query += TR_TILE) {
            find_gradients(&h, query, key, m);
            add_gradients(&h, query, key, i == 0 && query == begin, m);
        }
    }
    float scale = (float)(1 / sqrt((double)s->depth));
    int64_t at = key * s->pitch;
    tr_v_unpack(m->dk, keys, s->depth, scale, of->add, s->pitch, of->dk + at);
    tr_v_unpack(m->dv, keys, s->depth, 1, of->add, s->pitch, of->dv + at);
}

static void write_dq(const group *of, const float *sums) {
    const tr_attention_sizes *s = of->sizes;
    float scale = (float)(1 / sqrt((double)s->depth));
    for (int64_t i = 0; i < s->group; i++) {
        tr_v_unpack(sums + i * head_floats(s), s->context, s->depth, scale, of->add,
                    s->pitch, of->dq + i * s->depth);
    }
}

// Group `index` of all samples' groups, begun by a thread at key tile `first`.
static group group_at(const tr_attention_sizes *s, const tr_launch *launch,
                      int64_t index, int64_t tiles, int64_t first, const space *m) {
    int64_t row = index / s->pairs, shared = index % s->pairs;
    int64_t leader = shared * s->group; // the first head of the group
    int64_t y = row * s->context * s->width + leader * s->depth;
    int64_t q = row * s->context * s->pitch + leader * s->depth;
    int64_t k = row * s->context * s->pitch + s->keys + shared * s->depth;
    int64_t v = k + s->values - s->keys;
    const tr_real *qkv = launch->in[1];
    tr_real *dqkv = launch->out[0];
    return (group){
        .sizes = s,
        .q = qkv + q,
        .k = qkv + k,
        .v = qkv + v,
        .dy = (const tr_real *)launch->in[0] + y,
        .y = (const tr_real *)launch->in[2] + y,
        .lse = (const float *)launch->in[3] + (row * s->heads + leader) * s->context,
        .scale = tr__attention_scale(s),
        .dq = dqkv + q,
        .dk = dqkv + k,
        .dv = dqkv + v,
        .add = launch->accumulate & 1,
        .sums = m->dq[first == tiles - 1],
        .draw = tr__draw_open(launch->run, row, s->draw_id, s->dropout),
        .index = leader,
        .first = first,
        .packed = tiles,
    };
}

static void begin_sums(const group *of) {
    if (tr__attention_masked(of->sizes)) {
        memset(of->sums, 0, (size_t)all_floats(of->sizes) * sizeof *of->sums);
    }
}

static void run_piece(const tr_attention_sizes *s, const int32_t *positions,
                      const tr_launch *launch, const tr_attention_cut *cut, int piece) {
    space m = space_at(s, launch->workspace, piece);
    int64_t begin = tr__attention_start(cut, piece);
    int64_t end = tr__attention_start(cut, piece + 1);
    tr_attention_sizes sample = *s;
    group at = {0};
    for (int64_t task = begin; task < end; task++) {
        int64_t tile = cut->tiles - 1 - task % cut->tiles;
        if (task == begin || tile == cut->tiles - 1) {
            int64_t index = task / cut->tiles;
            sample = tr__attention_of(s, positions, index / s->pairs);
            at = group_at(&sample, launch, index, cut->tiles, tile, &m);
            begin_sums(&at);
        }
        run_keys(&at, tile, &m);
        if (tile == 0 && at.first == cut->tiles - 1) {
            write_dq(&at, at.sums);
        }
    }
}

// Adds what another thread has summed of dq, of each head the rows from `row` on.
static void add_sums(const tr_attention_sizes *s, int64_t row, const float *part,
                     float *sums) {
    int64_t width = tr_v_padded(s->depth), all = head_floats(s);
    for (int64_t h = 0; h < s->group; h++, sums += all, part += all) {
        for (int64_t i = row * width; i < s->context * width; i += TR_VW) {
            tr_v_store(sums + i, tr_v_load(sums + i) + tr_v_load(part + i));
        }
    }
}

// Sums dq of the group that is cut first at the start of `piece`, and writes it. The
// last of its pieces has summed all rows, the ones before it rows from some tile on
// (all rows, too, where queries see keys behind them).
static void join_group(const tr_attention_sizes *s, const tr_launch *launch,
                       const tr_attention_cut *cut, int piece) {
    int64_t index = tr__attention_start(cut, piece) / cut->tiles;
    int64_t begin = index * cut->tiles, end = begin + cut->tiles;
    int last = piece;
    while (tr__attention_start(cut, last + 1) < end) {
        last++;
    }
    float *sums = space_at(s, launch->workspace, last).dq[0];
    for (int p = piece - 1; p < last; p++) {
        int64_t stop = tr__attention_start(cut, p + 1);
        if (stop != tr__attention_start(cut, p)) {
            const float *part = space_at(s, launch->workspace, p).dq[p < piece];
            add_sums(s, s->both ? 0 : (end - stop) * TR_TILE, part, sums);
        }
    }
    group of = group_at(s, launch, index, cut->tiles, 0, &(space){0});
    write_dq(&of, sums);
}

// Is the start of `piece` the first cut inside a group?
static bool cuts_group(const tr_attention_cut *cut, int piece) {
    int64_t start = tr__attention_start(cut, piece);
    int64_t begin = start / cut->tiles * cut->tiles;
    return start > begin && tr__attention_start(cut, piece - 1) <= begin;
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_attention_sizes s = tr__attention_sizes(desc->in[1].shape, desc->attr);
    tr_attention_cut cut =
        tr__attention_cut(&s, s.pairs, TR_TILE, desc->target.workers);
    return (size_t)(cut.pieces * space_floats(&s)) * sizeof(float);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_attention_sizes s = tr__attention_sizes(desc->in[1].shape, desc->attr);
    tr_attention_cut cut =
        tr__attention_cut(&s, s.pairs, TR_TILE, desc->target.workers);
    const int32_t *positions = tr__launch_positions(desc, launch, 4); // [B, S]
#pragma omp parallel num_threads(cut.threads) if (cut.pieces > 1)
    {
#pragma omp for schedule(static)
        for (int piece = 0; piece < cut.pieces; piece++) {
            run_piece(&s, positions, launch, &cut, piece);
        }
#pragma omp for schedule(static)
        for (int piece = 1; piece < cut.pieces; piece++) {
            if (cuts_group(&cut, piece)) {
                join_group(&s, launch, &cut, piece);
            }
        }
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr_pairs_run() && tr__desc_real(desc, TR_REAL, 1 << 3, 0); // lse
}

const tr_kernel TR_ISA_NAME(tr__attention_backward_kernel) = {
    .name = "attention_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__attention_backward_cost,
    .workspace = workspace,
    .launch = launch_backward,
};
