// The loops around the inner one (gemm_tile.h). A part of C is a thread's own; of it,
// in blocks of rows and of steps, A is packed once, and B by so many columns as a tile
// has at a time, which stay in the nearest caches while all rows of the block are
// multiplied.
#include "backend/cpu/gemm.h"
#include "backend/cpu/gemm_pack.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"

extern const tr_gemm_kernel TR_ISA_NAME(tr__gemm);

enum {
#if defined(__AVX512F__)
    STEPS = 384,
#else
    STEPS = 192,
#endif
    BLOCK_ROWS = 512,
    PACK_COST = 8,   // of an element, in multiplications
    GRAIN_SHARE = 5, // multiplications in the time of moving one f32
};

typedef struct grid {
    int rows, columns; // parts
} grid;

typedef struct part {
    const tr_gemm_run *run;
    tr_range rows, columns;
    float *a;    // [rows of a block, steps], in panels
    float *b;    // [steps, columns of a tile]
    float *tile; // a tile that is not whole, or whose result goes elsewhere
    float *sums; // [rows of a block, sums_row], where C cannot hold them
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

// C holds the sums of some steps while the others are added, unless they are yet to be
// activated and added to what is there.
static bool sums_in_c(const tr_matmul_desc *d) {
    return !(d->relu && d->accumulate);
}

typedef struct room {
    int64_t a, b, tile, sums; // floats
} room;

static room room_of(const tr_matmul_desc *d, grid g) {
    int64_t rows = least(share(d->m, g.rows, TR_TILE_ROWS), BLOCK_ROWS);
    int64_t columns = share(d->n, g.columns, TR_TILE_COLUMNS);
    int64_t steps = least(d->k, STEPS);
    return (room){.a = rounded(rows * steps, 16),
                  .b = rounded(steps * TR_TILE_COLUMNS, 16),
                  .tile = TR_TILE_ROWS * TR_TILE_COLUMNS,
                  .sums = sums_in_c(d) ? 0 : rounded(rows * columns, 16)};
}

static int64_t floats_of(room r) {
    return r.a + r.b + r.tile + r.sums;
}

static size_t workspace(const tr_matmul_desc *d) {
    grid g = cut(d);
    int64_t floats = floats_of(room_of(d, g)) * g.rows * g.columns;
    return (size_t)floats * sizeof(float);
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

static tr_vf finished(const part *p, tr_vf sum, tr_vf bias, tr_vf before) {
    tr_vf zero = tr_v_set(0), value = sum + bias;
    value = p->run->desc->relu ? tr_v_select(value > zero, value, zero) : value;
    return value + before;
}

// One row: bias, activation, and what is added to where C did not hold the sums.
static void finish_row(const part *p, const float *sums, const float *bias,
                       int64_t columns, float *c) {
    bool add = p->run->accumulate && p->sums;
    int64_t q = 0;
    for (; q + TR_VW <= columns; q += TR_VW) {
        tr_v_store(c + q, finished(p, tr_v_load(sums + q),
                                   bias ? tr_v_load(bias + q) : tr_v_set(0),
                                   add ? tr_v_load(c + q) : tr_v_set(0)));
    }
    if (q < columns) {
        int left = (int)(columns - q);
        tr_vf old = add ? tr_v_load_part(c + q, left, 0) : tr_v_set(0);
        tr_vf more = bias ? tr_v_load_part(bias + q, left, 0) : tr_v_set(0);
        tr_v_store_part(
            c + q, finished(p, tr_v_load_part(sums + q, left, 0), more, old), left);
    }
}

static void finish(const part *p, const place *at) {
    const tr_matmul_desc *d = p->run->desc;
    const float *bias = d->bias ? (const float *)p->run->bias + at->j : NULL;
    float *c = (float *)p->run->c + at->i * d->c_row + at->j;
    if (!bias && !d->relu) {
        return;
    }
    for (int64_t r = 0; r < at->rows; r++) {
        finish_row(p, at->sums + r * at->sums_row, bias, at->columns, c + r * d->c_row);
    }
}

static void multiply(const part *p, tr_tile *t, const place *at) {
    int vectors = (int)((at->columns + TR_VW - 1) / TR_VW);
    bool whole = at->rows == TR_TILE_ROWS && at->columns == vectors * TR_VW;
    t->c = whole ? at->sums : p->tile;
    t->c_row = whole ? at->sums_row : vectors * TR_VW;
    t->add = whole && at->add;
    tr__tile(t, vectors);
    if (!whole) {
        move_tile(p->tile, t->c_row, at);
    }
    if (at->last) {
        finish(p, at);
    }
}

// ---- blocks

typedef struct block {
    tr_range rows, steps; // of A
} block;

static void pack_a(const part *p, const block *of) {
    const tr_matmul_desc *d = p->run->desc;
    const tr_pack pack = {
        .from = (const float *)p->run->a + of->rows.begin * d->a_row +
                of->steps.begin * d->a_col,
        .step = d->a_col,
        .lane = d->a_row,
        .steps = of->steps.end - of->steps.begin,
        .lanes = of->rows.end - of->rows.begin,
    };
    tr__pack_a(&pack, p->a);
}

// Packs the columns of B, or says that the first tile may do so while it multiplies.
static bool pack_b(const part *p, const block *of, const place *at, tr_tile *t) {
    const tr_matmul_desc *d = p->run->desc;
    const tr_pack pack = {
        .from =
            (const float *)p->run->b + of->steps.begin * d->b_row + at->j * d->b_col,
        .step = d->b_row,
        .lane = d->b_col,
        .steps = of->steps.end - of->steps.begin,
        .lanes = at->columns,
    };
    t->b = pack.from;
    t->b_row = pack.step;
    if (pack.lane == 1 && pack.lanes == TR_TILE_COLUMNS) {
        return true;
    }
    tr__pack_b(&pack, p->b);
    return false;
}

static void locate(const part *p, const block *of, place *at) {
    const tr_gemm_run *run = p->run;
    const tr_matmul_desc *d = run->desc;
    at->sums_row = p->sums ? p->sums_row : d->c_row;
    at->sums = p->sums ? p->sums + (at->i - of->rows.begin) * p->sums_row +
                             (at->j - p->columns.begin)
                       : (float *)run->c + at->i * d->c_row + at->j;
    at->add = of->steps.begin > 0 || (run->accumulate && !p->sums);
    at->last = of->steps.end == d->k;
    at->rows = least(of->rows.end - at->i, TR_TILE_ROWS);
}

// All rows of a block by some columns.
static void run_columns(const part *p, const block *of, place at) {
    tr_tile t = {.steps = of->steps.end - of->steps.begin};
    bool first = pack_b(p, of, &at, &t);
    for (at.i = of->rows.begin; at.i < of->rows.end; at.i += TR_TILE_ROWS) {
        t.a = p->a + (at.i - of->rows.begin) * t.steps;
        t.keep = first ? p->b : NULL;
        t.b = first ? t.b : p->b;
        first = false;
        locate(p, of, &at);
        multiply(p, &t, &at);
    }
}

static void run_block(const part *p, block of) {
    pack_a(p, &of);
    for (int64_t j = p->columns.begin; j < p->columns.end; j += TR_TILE_COLUMNS) {
        run_columns(
            p, &of,
            (place){.j = j, .columns = least(p->columns.end - j, TR_TILE_COLUMNS)});
    }
}

// ---- parts

static part part_of(const tr_gemm_run *run, grid g, int index) {
    const tr_matmul_desc *d = run->desc;
    room r = room_of(d, g);
    float *at = (float *)run->workspace + index * floats_of(r);
    part p = {
        .run = run,
        .rows = tr__range_part(d->m, TR_TILE_ROWS, index / g.columns, g.rows),
        .columns = tr__range_part(d->n, TR_TILE_COLUMNS, index % g.columns, g.columns),
        .a = at,
        .b = at + r.a,
        .tile = at + r.a + r.b,
        .sums = r.sums ? at + r.a + r.b + r.tile : NULL,
    };
    p.sums_row = p.columns.end - p.columns.begin;
    return p;
}

static void run_part(const void *work, int index, int parts) {
    const tr_gemm_run *run = work;
    const int64_t k = run->desc->k;
    (void)parts;
    part p = part_of(run, cut(run->desc), index);
    int64_t rows = block_rows(p.rows.end - p.rows.begin);
    for (int64_t i = p.rows.begin; i < p.rows.end; i += rows) {
        for (int64_t s = 0; s < k; s += STEPS) {
            run_block(&p, (block){{i, least(i + rows, p.rows.end)},
                                  {s, least(s + STEPS, k)}});
        }
    }
}

static void run(const tr_gemm_run *run) {
    grid g = cut(run->desc);
    tr__parts_run(g.rows * g.columns, run_part, run);
}

const tr_gemm_kernel TR_ISA_NAME(tr__gemm) = {workspace, run};
