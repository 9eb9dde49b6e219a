#include "ops/nn/contrastive/cpu_tiles.h"

#include "backend/cpu/parallel.h"
#include "base/checked.h"
#include "base/memory.h"

// A tile of 128 by 512 logits fits a core's second cache.
enum { ROWS_MOST = 128, COLUMNS_MOST = 512, UNIT = 16 };

static int64_t candidates_most(const tr_op_desc *desc) {
    bool pool = tr__contrastive_has(desc, PAIRS_POOL);
    tr_shape shape = desc->in[pool ? PAIRS_POOL : PAIRS_X].shape;
    return shape.dim[0] * tr__max_i64(shape.dim[1] - 1, 1);
}

static tr_status create_products(const tr_op_desc *desc, bool backward,
                                 tr_pair_tiles *t, tr_error *err) {
    int64_t m = t->rows, n = t->columns, c = t->width;
    const tr_matmul_desc logits = {.m = m,
                                   .n = n,
                                   .k = c,
                                   .a_row = c,
                                   .a_col = 1,
                                   .b_row = 1,
                                   .b_col = c,
                                   .c_row = n,
                                   .fresh = true,
                                   .threads = desc->target.workers};
    const tr_matmul_desc dasks = {.m = m,
                                  .n = c,
                                  .k = n,
                                  .a_row = n,
                                  .a_col = 1,
                                  .b_row = c,
                                  .b_col = 1,
                                  .c_row = c,
                                  .accumulate = true,
                                  .threads = desc->target.workers};
    const tr_matmul_desc dtile = {.m = n,
                                  .n = c,
                                  .k = m,
                                  .a_row = 1,
                                  .a_col = n,
                                  .b_row = c,
                                  .b_col = 1,
                                  .c_row = c,
                                  .fresh = true,
                                  .threads = desc->target.workers};
    tr_status status = tr__matmul_create(&logits, &t->logits, err);
    if (status == TR_OK && backward) {
        status = tr__matmul_create(&dasks, &t->dasks, err);
    }
    if (status == TR_OK && backward) {
        status = tr__matmul_create(&dtile, &t->dtile, err);
    }
    return status;
}

// Room of `count` elements, from *at on.
static size_t take(size_t *at, int64_t count, size_t element) {
    size_t begin = *at;
    *at += ((size_t)count * element + 63) / 64 * 64;
    return begin;
}

static void lay_out(tr_pair_tiles *t) {
    size_t at = 0, scratch = 0;
    const tr_matmul *products[] = {t->logits, t->dasks, t->dtile};
    t->asks = take(&at, t->rows * t->width, sizeof(float));
    t->tile = take(&at, t->columns * t->width, sizeof(float));
    t->slopes = take(&at, t->rows * t->columns, sizeof(float));
    t->groups = take(&at, t->columns, sizeof(int64_t));
    t->places = take(&at, t->columns, sizeof(int64_t));
    t->numbers = take(&at, t->columns, sizeof(int64_t));
    t->partners = take(&at, t->columns, sizeof(int64_t));
    t->totals = take(&at, t->rows * TR_PAIR_TOTALS, sizeof(double));
    t->dasks_at = take(&at, t->dasks ? t->rows * t->width : 0, sizeof(float));
    t->dtile_at = take(&at, t->dtile ? t->columns * t->width : 0, sizeof(float));
    t->scratch = at;
    for (int i = 0; i < 3; i++) {
        size_t need = tr__matmul_workspace(products[i]);
        scratch = need > scratch ? need : scratch;
    }
    t->bytes = at + scratch;
}

tr_status tr__pair_tiles_create(const tr_op_desc *desc, bool backward,
                                tr_pair_tiles **out, tr_error *err) {
    *out = NULL;
    tr_pair_tiles *t = tr__calloc(1, sizeof *t);
    if (!t) {
        return tr_fail(err, TR_MEMORY, "no memory to prepare a contrastive loss");
    }
    tr_shape x = desc->in[PAIRS_X].shape;
    t->rows = tr__min_i64(x.dim[0], ROWS_MOST);
    t->columns = tr__min_i64(tr__round_up(candidates_most(desc), UNIT), COLUMNS_MOST);
    t->width = x.dim[2];
    t->workers = desc->target.workers;
    tr_status status = create_products(desc, backward, t, err);
    if (status != TR_OK) {
        tr__pair_tiles_release(t);
        return status;
    }
    lay_out(t);
    *out = t;
    return TR_OK;
}

size_t tr__pair_tiles_workspace(const tr_op_desc *desc, const void *state) {
    (void)desc;
    return ((const tr_pair_tiles *)state)->bytes;
}

void tr__pair_tiles_release(void *state) {
    tr_pair_tiles *t = state;
    if (t) {
        tr__matmul_destroy(t->logits);
        tr__matmul_destroy(t->dasks);
        tr__matmul_destroy(t->dtile);
        tr__free(t);
    }
}

tr_pair_tile tr__pair_tile(const tr_pair_tiles *t, void *workspace) {
    char *at = workspace;
    return (tr_pair_tile){
        .asks = (float *)(at + t->asks),
        .tile = (float *)(at + t->tile),
        .logits = (float *)(at + t->slopes),
        .group = (int64_t *)(at + t->groups),
        .place = (int64_t *)(at + t->places),
        .number = (int64_t *)(at + t->numbers),
        .partner = (int64_t *)(at + t->partners),
        .totals = (double *)(at + t->totals),
        .dasks = (float *)(at + t->dasks_at),
        .dtile = (float *)(at + t->dtile_at),
        .scratch = at + t->scratch,
    };
}

void tr__pair_tile_ask(const tr_pair_tiles *t, const tr_contrastive_batch *b,
                       const tr_contrastive_side *side, int64_t first,
                       tr_pair_tile *tile) {
    size_t bytes = (size_t)t->width * sizeof(float);
    tile->there = tr__min_i64(t->rows, b->there - first);
    for (int64_t r = 0; r < t->rows; r++) {
        float *to = tile->asks + r * t->width;
        if (r < tile->there) {
            memcpy(to, b->x + ((first + r) * b->texts + side->asks) * t->width, bytes);
        } else {
            memset(to, 0, bytes);
        }
    }
}

// Notes the candidate in the tile's next column.
static void note(const tr_contrastive_batch *b, const tr_contrastive_side *side,
                 int64_t candidate, tr_pair_tile *tile) {
    int64_t each = side->to - side->from, at = tile->columns_there++;
    int64_t g = candidate / each, k = side->from + candidate % each;
    tile->group[at] = g;
    tile->place[at] = k;
    if (b->attr.mask_equal) {
        tile->number[at] = tr__pool_number(b, g, k);
        tile->partner[at] = k == side->own ? tr__pool_number(b, g, side->asks) : -1;
    }
}

// Copies the candidates that are noted, by all threads: a large pool comes from memory,
// which one core cannot read at its full rate.
static void copy_candidates(const tr_pair_tiles *t, const tr_contrastive_batch *b,
                            tr_pair_tile *tile) {
    size_t bytes = (size_t)t->width * sizeof(float);
    int threads = tr__threads_for(t->columns * t->width, 1, t->workers);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < t->columns; i++) {
        float *to = tile->tile + i * t->width;
        if (i < tile->columns_there) {
            memcpy(to, tr__pool_text(b, tile->group[i], tile->place[i]), bytes);
        } else {
            memset(to, 0, bytes);
        }
    }
}

bool tr__pair_tile_next(const tr_pair_tiles *t, const tr_contrastive_batch *b,
                        const tr_contrastive_side *side, int64_t *next,
                        tr_pair_tile *tile) {
    int64_t each = side->to - side->from, all = b->groups * each;
    tile->columns_there = 0;
    for (; *next < all && tile->columns_there < t->columns; ++*next) {
        if (tr__pool_has(b, *next / each)) {
            note(b, side, *next, tile);
        }
    }
    if (tile->columns_there == 0) {
        return false;
    }
    copy_candidates(t, b, tile);
    return true;
}
