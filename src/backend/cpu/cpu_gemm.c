// The loops around the inner one (gemm_tile.h). A part of C is a thread's own; of it,
// in blocks of rows and of steps, A is packed once, and B by so many columns as a tile
// has at a time, which stay in the nearest caches while all rows of the block are
// multiplied. An A of short rows is read where it is, since packing takes longer there
// than it saves.
#include "backend/cpu/gemm.h"
#include "backend/cpu/gemm_pack.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/pair.h"
#include "backend/cpu/parallel.h"
#include "base/half.h"

extern const tr_gemm_kernel TR_ISA_NAME(tr__gemm);

enum {
#if defined(__AVX512F__)
    STEPS = 384, // of pairs, in a block
#else
    STEPS = 256,
#endif
    BLOCK = STEPS * TR_PAIR_STEPS, // along k
    BLOCK_ROWS = 512,
    PACK_COST = 8,   // of an element, in multiplications
    GRAIN_SHARE = 5, // multiplications in the time of moving one f32
    WAY = 4096,      // bytes of a cache's way: lines so far apart replace each other
};

typedef struct grid {
    int rows, columns; // parts
} grid;

typedef struct part {
    const tr_gemm_run *run;
    tr_range rows, columns;
    tr_tile_a from_a; // of whole panels
    tr_pair *a;       // [rows of a block, or of the one panel that is not whole; steps]
    tr_pair *b;       // [steps, columns of a tile]
    float *tile;      // that is not whole
    float *sums;      // [.., sums_row], where C cannot hold them; else NULL
    int64_t sums_row;
} part;

// ---- sizes

static int64_t rounded(int64_t count, int64_t unit) {
    return (count + unit - 1) / unit * unit;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t share(int64_t count, int parts, int64_t unit) {
    return rounded((rounded(count, unit) / unit + parts - 1) / parts * unit, unit);
}

static double cost(const tr_matmul_desc *d, grid g) {
    double rows = (double)share(d->m, g.rows, TR_TILE_ROWS);
    double columns = (double)share(d->n, g.columns, TR_TILE_COLUMNS);
    return rows * columns + PACK_COST * (rows + columns);
}

// Cuts C for the threads so that the largest part is done soonest.
static grid cut(const tr_matmul_desc *d) {
    double work = (double)d->m * (double)d->n * (double)d->k / GRAIN_SHARE / TR_GRAIN;
    int threads = tr__threads_worth(work, d->threads);
    grid best = {1, threads};
    for (int rows = 2; rows <= threads; rows++) {
        grid g = {rows, threads / rows};
        if (threads % rows == 0 && cost(d, g) < cost(d, best)) {
            best = g;
        }
    }
    return best;
}

// Blocks of a part are of one size, so that no small one is left over.
static int64_t block_rows(int64_t rows) {
    int64_t blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    return blocks ? share(rows, (int)blocks, TR_TILE_ROWS) : 0;
}

static bool is_half(tr_dtype type) {
    return type == TR_BF16;
}

// C holds the sums of some steps while the others are added, unless they are yet to be
// rounded, or to be activated and added to what is there.
static bool sums_in_c(const tr_matmul_desc *d) {
    return !is_half(d->c_type) && !(d->relu && d->accumulate);
}

// Sums that are complete after one block are needed for one tile at a time.
static bool is_one_block(const tr_matmul_desc *d) {
    return d->k <= BLOCK;
}

// How the inner loop finds whole panels of A. Packing takes longer than it saves where
// rows are short; but lines that are a way of the nearest cache apart replace each
// other there, and a step in place should be half a line at least.
static tr_tile_a source_of_a(const tr_matmul_desc *d) {
    int64_t apart = d->a_col == 1 ? d->a_row : d->a_col;
    if (apart * (int64_t)sizeof(tr_number) >= WAY) {
        return TR_TILE_A_PACKED;
    }
    if (d->a_col == 1) {
        bool whole = d->k % TR_PAIR_STEPS == 0 && d->a_row % TR_PAIR_STEPS == 0;
        return whole ? TR_TILE_A_ROWS : TR_TILE_A_PACKED;
    }
    return TR_PAIR_STEPS == 1 && TR_TILE_ROWS >= 8 ? TR_TILE_A_STEPS : TR_TILE_A_PACKED;
}

typedef struct room {
    int64_t a, b, tile, sums; // words of 4 bytes
} room;

static int64_t sums_room(const tr_matmul_desc *d, int64_t rows, int64_t columns) {
    return sums_in_c(d)      ? 0
           : is_one_block(d) ? TR_TILE_ROWS * TR_TILE_COLUMNS
                             : rounded(rows * columns, 16);
}

static room room_of(const tr_matmul_desc *d, grid g) {
    int64_t rows = least(share(d->m, g.rows, TR_TILE_ROWS), BLOCK_ROWS);
    int64_t columns = share(d->n, g.columns, TR_TILE_COLUMNS);
    int64_t steps = least((d->k + TR_PAIR_STEPS - 1) / TR_PAIR_STEPS, STEPS);
    int64_t packed = source_of_a(d) == TR_TILE_A_PACKED ? rows : TR_TILE_ROWS;
    return (room){.a = rounded(packed * steps, 16),
                  .b = rounded(steps * TR_TILE_COLUMNS, 16),
                  .tile = TR_TILE_ROWS * TR_TILE_COLUMNS,
                  .sums = sums_room(d, rows, columns)};
}

static int64_t words_of(room r) {
    return r.a + r.b + r.tile + r.sums;
}

static size_t workspace(const tr_matmul_desc *d) {
    grid g = cut(d);
    int64_t words = words_of(room_of(d, g)) * g.rows * g.columns;
    return (size_t)words * sizeof(float);
}

// ---- one tile

typedef struct place {
    int64_t i, j;          // of C
    int64_t rows, columns; // of the tile that are in C
    float *sums;
    int64_t sums_row;
    bool add, last; // to earlier steps; no steps follow
} place;

// = or += the first rows and columns of a tile
static void move_tile(const float *tile, int64_t tile_row, const place *at) {
    for (int64_t r = 0; r < at->rows; r++) {
        for (int64_t q = 0; q < at->columns; q++) {
            float *sum = at->sums + r * at->sums_row + q;
            float value = tile[r * tile_row + q];
            *sum = at->add ? *sum + value : value;
        }
    }
}

// Numbers of an operand from f32 or to it; `left` of a vector.
static tr_vf load_some(const void *from, int64_t at, bool half, int left) {
    float some[TR_VW] = {0};
    for (int i = 0; half && i < left; i++) {
        some[i] = tr__bf16_to_f32(((const uint16_t *)from)[at + i]);
    }
    return half ? tr_v_load(some) : tr_v_load_part((const float *)from + at, left, 0);
}

static tr_vf load(const void *from, int64_t at, bool half, int left) {
    return left < TR_VW ? load_some(from, at, half, left)
           : half       ? tr_v_of_bf16(tr_v_load_h((const uint16_t *)from + at))
                        : tr_v_load((const float *)from + at);
}

static void store(void *to, int64_t at, bool half, int left, tr_vf v) {
    uint16_t some[TR_VW];
    if (half && left == TR_VW) {
        tr_v_store_h((uint16_t *)to + at, tr_v_to_bf16(v));
    } else if (half) {
        tr_v_store_h(some, tr_v_to_bf16(v));
        memcpy((uint16_t *)to + at, some, (size_t)left * sizeof *some);
    } else if (left == TR_VW) {
        tr_v_store((float *)to + at, v);
    } else {
        tr_v_store_part((float *)to + at, v, left);
    }
}

// One row of a tile, whose first element in C is `at`: bias, activation, rounding, and
// what is added to where C did not hold the sums.
static void finish_row(const part *p, const float *sums, const place *of, int64_t at) {
    const tr_gemm_run run = *p->run;
    const tr_matmul_desc d = *run.desc;
    const bool add = run.accumulate && p->sums, half = is_half(d.c_type);
    const tr_vf zero = tr_v_set(0);
    for (int64_t q = 0; q < of->columns; q += TR_VW) {
        int left = (int)least(of->columns - q, TR_VW);
        tr_vf value = load(sums, q, false, left);
        value += d.bias ? load(run.bias, of->j + q, is_half(d.type), left) : zero;
        value = d.relu ? tr_v_relu(value) : value;
        value += add ? load(run.c, at + q, half, left) : zero;
        store(run.c, at + q, half, left, value);
    }
}

// A whole tile that is only to be rounded.
static void round_tile(const place *of, int64_t c_row, uint16_t *c) {
    for (int64_t r = 0; r < TR_TILE_ROWS; r++) {
        for (int64_t q = 0; q < TR_TILE_COLUMNS; q += TR_VW) {
            tr_v_store_h(c + r * c_row + q,
                         tr_v_to_bf16(tr_v_load(of->sums + r * of->sums_row + q)));
        }
    }
}

static bool is_only_rounded(const part *p, const place *at) {
    const tr_matmul_desc *d = p->run->desc;
    return is_half(d->c_type) && !d->bias && !d->relu && !p->run->accumulate &&
           at->rows == TR_TILE_ROWS && at->columns == TR_TILE_COLUMNS;
}

static void finish(const part *p, const place *at) {
    const tr_matmul_desc *d = p->run->desc;
    int64_t first = at->i * d->c_row + at->j;
    if (!d->bias && !d->relu && !p->sums) {
        return;
    }
    if (is_only_rounded(p, at)) {
        round_tile(at, d->c_row, (uint16_t *)p->run->c + first);
        return;
    }
    for (int64_t r = 0; r < at->rows; r++) {
        finish_row(p, at->sums + r * at->sums_row, at, first + r * d->c_row);
    }
}

// Bias and activation of a whole tile in f32 are applied before it is stored.
static bool finish_in_tile(const part *p, const place *at, tr_tile *t) {
    const tr_matmul_desc *d = p->run->desc;
    bool can = at->last && !p->sums && !is_half(d->type);
    t->bias = can && d->bias ? (const float *)p->run->bias + at->j : NULL;
    t->relu = can && d->relu;
    return can;
}

static void multiply(const part *p, tr_tile *t, const place *at) {
    int vectors = (int)((at->columns + TR_VW - 1) / TR_VW);
    bool whole = at->rows == TR_TILE_ROWS && at->columns == vectors * TR_VW;
    t->c = whole ? at->sums : p->tile;
    t->c_row = whole ? at->sums_row : vectors * TR_VW;
    t->add = whole && at->add;
    t->bias = NULL;
    t->relu = false;
    bool finished = whole && finish_in_tile(p, at, t);
    tr__tile(t, vectors);
    if (!whole) {
        move_tile(p->tile, t->c_row, at);
    }
    if (at->last && !finished) {
        finish(p, at);
    }
}

// ---- blocks

typedef struct block {
    tr_range rows, steps; // of A
} block;

static const tr_number *rows_of(const part *p, const block *of, int64_t i) {
    const tr_matmul_desc *d = p->run->desc;
    return (const tr_number *)p->run->a + (of->rows.begin + i) * d->a_row +
           of->steps.begin * d->a_col;
}

// All rows, or those that are left behind the panels that are read in place.
static void pack_a(const part *p, const block *of) {
    const tr_matmul_desc *d = p->run->desc;
    int64_t rows = of->rows.end - of->rows.begin;
    int64_t first =
        p->from_a == TR_TILE_A_PACKED ? 0 : rows / TR_TILE_ROWS * TR_TILE_ROWS;
    const tr_pack pack = {
        .from = rows_of(p, of, first),
        .step = d->a_col,
        .lane = d->a_row,
        .count = of->steps.end - of->steps.begin,
        .lanes = rows - first,
    };
    tr__pack_a(&pack, p->a);
}

// The panel of A that begins at row i of the block.
static void locate_a(const part *p, const block *of, int64_t i, tr_tile *t) {
    const tr_matmul_desc *d = p->run->desc;
    bool whole = i + TR_TILE_ROWS <= of->rows.end - of->rows.begin;
    t->from_a = whole ? p->from_a : TR_TILE_A_PACKED;
    t->a_apart = (d->a_col == 1 ? d->a_row : d->a_col) / TR_PAIR_STEPS;
    if (t->from_a != TR_TILE_A_PACKED) {
        t->a = (const tr_operand_pair *)(const void *)rows_of(p, of, i);
    } else {
        t->a = p->from_a == TR_TILE_A_PACKED ? p->a + i * t->steps : p->a;
    }
}

static tr_pack columns_of(const part *p, const block *of, int64_t j, int64_t columns) {
    const tr_matmul_desc *d = p->run->desc;
    return (tr_pack){
        .from =
            (const tr_number *)p->run->b + of->steps.begin * d->b_row + j * d->b_col,
        .step = d->b_row,
        .lane = d->b_col,
        .count = of->steps.end - of->steps.begin,
        .lanes = columns,
    };
}

// Packs the columns of B, or says where the first tile finds them.
static const tr_number *pack_b(const part *p, const tr_pack *columns) {
    if (columns->lane == 1 && columns->lanes % TR_VW == 0 && tr__pack_even(columns)) {
        return columns->from;
    }
    tr__pack_b(columns, p->b);
    return NULL;
}

static void locate_sums(const part *p, const block *of, place *at) {
    const tr_matmul_desc *d = p->run->desc;
    if (!p->sums) {
        at->sums = (float *)p->run->c + at->i * d->c_row + at->j;
        at->sums_row = d->c_row;
    } else if (is_one_block(d)) {
        at->sums = p->sums;
        at->sums_row = TR_TILE_COLUMNS;
    } else {
        at->sums = p->sums + (at->i - of->rows.begin) * p->sums_row +
                   (at->j - p->columns.begin);
        at->sums_row = p->sums_row;
    }
}

static void locate(const part *p, const block *of, place *at) {
    locate_sums(p, of, at);
    at->add = of->steps.begin > 0 || (p->run->accumulate && !p->sums);
    at->last = of->steps.end == p->run->desc->k;
    at->rows = least(of->rows.end - at->i, TR_TILE_ROWS);
}

// All rows of a block by some columns.
static void run_columns(const part *p, const block *of, place at) {
    const tr_pack columns = columns_of(p, of, at.j, at.columns);
    int64_t rows = of->rows.end - of->rows.begin;
    tr_tile t = {
        .steps = tr__pack_steps(&columns),
        .from = pack_b(p, &columns),
        .from_row = columns.step,
        .b = p->b,
    };
    for (int64_t i = 0; i < rows; i += TR_TILE_ROWS) {
        at.i = of->rows.begin + i;
        locate_a(p, of, i, &t);
        locate(p, of, &at);
        multiply(p, &t, &at);
        t.from = NULL;
    }
}

// Of the columns that are left, those of the next tile: no vector is left for a tile of
// its own, whose sums would be too few to hide the time that each takes.
static int64_t next_columns(int64_t left) {
    bool spare = left > TR_TILE_COLUMNS && left <= TR_TILE_COLUMNS + TR_VW;
    return least(left, spare ? TR_TILE_COLUMNS - TR_VW : TR_TILE_COLUMNS);
}

static void run_block(const part *p, block of) {
    pack_a(p, &of);
    for (int64_t j = p->columns.begin; j < p->columns.end;) {
        int64_t columns = next_columns(p->columns.end - j);
        run_columns(p, &of, (place){.j = j, .columns = columns});
        j += columns;
    }
}

// ---- parts

static part part_of(const tr_gemm_run *run, grid g, int index) {
    const tr_matmul_desc *d = run->desc;
    room r = room_of(d, g);
    tr_pair *at = (tr_pair *)run->workspace + index * words_of(r);
    part p = {
        .run = run,
        .rows = tr__range_part(d->m, TR_TILE_ROWS, index / g.columns, g.rows),
        .columns = tr__range_part(d->n, TR_TILE_COLUMNS, index % g.columns, g.columns),
        .a = at,
        .b = at + r.a,
        .tile = (float *)(at + r.a + r.b),
        .sums = r.sums ? (float *)(at + r.a + r.b + r.tile) : NULL,
    };
    p.sums_row = p.columns.end - p.columns.begin;
    p.from_a = source_of_a(d);
    return p;
}

static void run_part(const void *work, int index, int parts) {
    const tr_gemm_run *run = work;
    const int64_t k = run->desc->k;
    (void)parts;
    part p = part_of(run, cut(run->desc), index);
    int64_t rows = block_rows(p.rows.end - p.rows.begin);
    for (int64_t i = p.rows.begin; i < p.rows.end; i += rows) {
        for (int64_t s = 0; s < k; s += BLOCK) {
            run_block(&p, (block){{i, least(i + rows, p.rows.end)},
                                  {s, least(s + BLOCK, k)}});
        }
    }
}

static void run(const tr_gemm_run *run) {
    grid g = cut(run->desc);
    tr__parts_run(g.rows * g.columns, run_part, run);
}

const tr_gemm_kernel TR_ISA_NAME(tr__gemm) = {workspace, run};
