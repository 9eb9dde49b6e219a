// The contrastive loss, tile by tile of logits. The first pass over the candidates adds
// up e^logits, the second makes the logits once more, and of them their gradients and
// what these give.
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "ops/nn/contrastive/cpu_tiles.h"
#include "ops/nn/linear_cross_entropy/cpu_softmax_row.h"

#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__contrastive_kernel);
extern const tr_kernel TR_ISA_NAME(tr__contrastive_backward_kernel);

// A launch, one side of its loss, and the groups of its tile that ask.
typedef struct pass {
    const tr_op_desc *desc;
    const tr_launch *launch;
    const tr_pair_tiles *tiles;
    tr_contrastive_batch b;
    tr_contrastive_side side;
    tr_pair_tile tile;
    int64_t first; // group
    float *dx, *dpool;
    double dscale;
} pass;

static pass pass_of(const tr_op_desc *desc, const tr_pair_tiles *tiles,
                    const tr_launch *launch) {
    return (pass){.desc = desc,
                  .launch = launch,
                  .tiles = tiles,
                  .b = tr__contrastive_batch(desc, launch),
                  .tile = tr__pair_tile(tiles, launch->workspace)};
}

static void multiply(const pass *p, tr_matmul *product, const float *a, const float *b,
                     float *c, bool add) {
    tr__launch_note(p->launch,
                    tr__matmul_run(product, add, a, b, NULL, c, p->tile.scratch));
}

// The column of the row's own text; -1: it is in another tile.
static int64_t own_column(const pass *p, int64_t r) {
    const tr_pair_tile *t = &p->tile;
    int64_t group = tr__contrastive_place(&p->b, p->first + r);
    int64_t each = p->side.to - p->side.from, low = 0, high = t->columns_there;
    int64_t wanted = group * each + p->side.own - p->side.from;
    while (low < high) { // candidates are in their order
        int64_t middle = (low + high) / 2;
        int64_t is = t->group[middle] * each + t->place[middle] - p->side.from;
        if (is < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < t->columns_there && t->group[low] == group &&
                   t->place[low] == p->side.own
               ? low
               : -1;
}

// Products become logits; those of texts that do not count, -infinity.
static void scale_row(const pass *p, int64_t r, int64_t own, float *row) {
    const tr_pair_tile *t = &p->tile;
    float factor = (float)p->b.factor, kept = own >= 0 ? row[own] * factor : 0;
    if (p->b.attr.mask_equal) {
        tr_contrastive_equal equal =
            tr__contrastive_equal(&p->b, &p->side, p->first + r);
        for (int64_t i = 0; i < t->columns_there; i++) {
            bool same = tr__contrastive_is_equal(&equal, t->number[i], t->partner[i]);
            row[i] = same ? -INFINITY : row[i] * factor;
        }
    } else {
        for (int64_t i = 0; i < t->columns_there; i++) {
            row[i] *= factor;
        }
    }
    if (own >= 0) {
        row[own] = kept;
    }
}

// The tile's logits of a row.
static float *logits_row(const pass *p, int64_t r, int64_t *own) {
    float *row = p->tile.logits + r * p->tiles->columns;
    *own = own_column(p, r);
    scale_row(p, r, *own, row);
    return row;
}

static void add_row(const pass *p, int64_t r) {
    int64_t own;
    float *row = logits_row(p, r, &own);
    double *total = p->tile.totals + r * TR_PAIR_TOTALS;
    float top = tr__row_top(row, p->tile.columns_there);
    if (own >= 0) {
        total[TR_PAIR_OWN] = row[own];
    }
    if (top > total[TR_PAIR_TOP]) {
        total[TR_PAIR_SUM] *= exp(total[TR_PAIR_TOP] - top);
        total[TR_PAIR_TOP] = top;
    }
    total[TR_PAIR_SUM] += tr__row_exp(row, p->tile.columns_there,
                                      tr__row_shift((float)total[TR_PAIR_TOP]), false);
}

// The logits become their gradients, with the factor that products have.
static void soften_row(const pass *p, int64_t r) {
    int64_t own, all = p->tiles->columns, there = p->tile.columns_there;
    float *row = logits_row(p, r, &own);
    const double *total = p->tile.totals + r * TR_PAIR_TOTALS;
    double seed = p->side.weight * p->b.seed * p->b.factor;
    tr__row_exp(row, there, tr__row_shift((float)total[TR_PAIR_TOP]), true);
    tr__row_close(row, there, (float)(seed / total[TR_PAIR_SUM]), own, (float)-seed);
    memset(row + there, 0, (size_t)(all - there) * sizeof *row);
}

static void each_row(const pass *p, void (*work)(const pass *p, int64_t r)) {
    int64_t rows = p->tile.there;
    int threads = tr__threads_for(rows * p->tiles->columns, 8, p->desc->target.workers);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        work(p, r);
    }
}

// ---- the first pass

static void add_up(pass *p) {
    int64_t next = 0;
    for (int64_t r = 0; r < p->tile.there; r++) {
        double *total = p->tile.totals + r * TR_PAIR_TOTALS;
        total[TR_PAIR_TOP] = -INFINITY;
        total[TR_PAIR_SUM] = total[TR_PAIR_OWN] = 0;
    }
    while (tr__pair_tile_next(p->tiles, &p->b, &p->side, &next, &p->tile)) {
        multiply(p, p->tiles->logits, p->tile.asks, p->tile.tile, p->tile.logits,
                 false);
        each_row(p, add_row);
    }
}

static void add_sums(const pass *p, double *sums) {
    bool anchors = p->side.asks == TR_ANCHOR;
    for (int64_t r = 0; r < p->tile.there; r++) {
        const double *total = p->tile.totals + r * TR_PAIR_TOTALS;
        sums[TR_SUM_LOSS] +=
            p->side.weight *
            (total[TR_PAIR_TOP] + log(total[TR_PAIR_SUM]) - total[TR_PAIR_OWN]);
        sums[TR_SUM_COUNT] += anchors;
        sums[TR_SUM_CORRECT] += anchors && total[TR_PAIR_OWN] >= total[TR_PAIR_TOP];
    }
}

// ---- the second pass

static void add_to_pool(const pass *p) {
    int64_t width = p->tiles->width;
    int threads =
        tr__threads_for(p->tile.columns_there * width, 2, p->desc->target.workers);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < p->tile.columns_there; i++) {
        const float *from = p->tile.dtile + i * width;
        float *to =
            p->dpool +
            (tr__pool_text(&p->b, p->tile.group[i], p->tile.place[i]) - p->b.pool);
        for (int64_t c = 0; c < width; c++) {
            to[c] += from[c];
        }
    }
}

// The scale's gradient is the product of the texts that ask with their own: both are
// the sum over all logits of gradient times logit.
static void add_asks(pass *p) {
    int64_t width = p->tiles->width;
    for (int64_t r = 0; r < p->tile.there; r++) {
        int64_t at = ((p->first + r) * p->b.texts + p->side.asks) * width;
        const float *from = p->tile.dasks + r * width;
        for (int64_t c = 0; c < width; c++) {
            p->dscale += (double)from[c] * p->b.x[at + c];
        }
        for (int64_t c = 0; p->dx && c < width; c++) {
            p->dx[at + c] += from[c];
        }
    }
}

static void give(pass *p) {
    int64_t next = 0;
    int64_t rows = p->tiles->rows, there = p->tile.there, all = p->tiles->columns;
    memset(p->tile.dasks, 0, (size_t)(rows * p->tiles->width) * sizeof(float));
    while (tr__pair_tile_next(p->tiles, &p->b, &p->side, &next, &p->tile)) {
        multiply(p, p->tiles->logits, p->tile.asks, p->tile.tile, p->tile.logits,
                 false);
        each_row(p, soften_row);
        memset(p->tile.logits + there * all, 0,
               (size_t)((rows - there) * all) * sizeof(float));
        multiply(p, p->tiles->dasks, p->tile.logits, p->tile.tile, p->tile.dasks, true);
        if (p->dpool) {
            multiply(p, p->tiles->dtile, p->tile.logits, p->tile.asks, p->tile.dtile,
                     false);
            add_to_pool(p);
        }
    }
    add_asks(p);
}

// ---- launches

static void run(pass *p, bool backward, double *sums) {
    for (int side = 0; side < tr__contrastive_sides(&p->b); side++) {
        p->side = tr__contrastive_side(&p->b, side);
        for (p->first = 0; p->first < p->b.there; p->first += p->tiles->rows) {
            tr__pair_tile_ask(p->tiles, &p->b, &p->side, p->first, &p->tile);
            add_up(p);
            add_sums(p, sums);
            if (backward) {
                give(p);
            }
        }
    }
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    pass p = pass_of(desc, state, launch);
    run(&p, false, launch->out[0]);
}

// The result to add to; NULL: it is not wanted.
static float *begin(const tr_op_desc *desc, const tr_launch *launch, int i) {
    if (launch->out[i] && !(launch->accumulate >> i & 1)) {
        memset(launch->out[i], 0, (size_t)tr_tensor_bytes(desc->out[i]));
    }
    return launch->out[i];
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    pass p = pass_of(desc, state, launch);
    p.dx = begin(desc, launch, PAIRS_DX);
    p.dpool = begin(desc, launch, PAIRS_DPOOL);
    float *dscale = begin(desc, launch, PAIRS_DSCALE);
    run(&p, true, launch->out[PAIRS_SUMS]);
    if (dscale) {
        *dscale = (float)(*dscale + p.dscale);
    }
}

static tr_status prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    return tr__pair_tiles_create(desc, false, (tr_pair_tiles **)state, err);
}

static tr_status prepare_backward(const tr_op_desc *desc, void **state, tr_error *err) {
    return tr__pair_tiles_create(desc, true, (tr_pair_tiles **)state, err);
}

static bool supports(const tr_op_desc *desc) {
    return desc->in[PAIRS_X].dtype == TR_F32;
}

const tr_kernel TR_ISA_NAME(tr__contrastive_kernel) = {
    .name = "contrastive.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__contrastive_cost,
    .prepare = prepare,
    .workspace = tr__pair_tiles_workspace,
    .launch = forward,
    .release = tr__pair_tiles_release,
};

const tr_kernel TR_ISA_NAME(tr__contrastive_backward_kernel) = {
    .name = "contrastive_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__contrastive_cost,
    .prepare = prepare_backward,
    .workspace = tr__pair_tiles_workspace,
    .launch = backward,
    .release = tr__pair_tiles_release,
};
