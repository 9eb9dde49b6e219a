// A slice of the head, chunk of rows by chunk of rows: product, then the row's sum
// folded into the running one; in the backward the product again, unless the forward
// has kept what it gave, gradients in place of logits, and the products that these
// give. Of few rows with a target, these alone.
#include "backend/cpu/isa.h"
#include "backend/cpu/real.h"
#include "ops/nn/linear_cross_entropy/cpu_gather.h"
#include "ops/nn/linear_cross_entropy/cpu_softmax_row.h"
#include "ops/nn/linear_cross_entropy_slice/operands.h"

extern const tr_kernel TR_ISA_NAME(tr__lce_slice_kernel);
extern const tr_kernel TR_ISA_NAME(tr__lce_slice_backward_kernel);

static int threads_of(const tr_lce_pass *p) {
    tr_linear_dims dims = p->products->dims;
    return tr__threads_for(dims.rows * dims.out, 8, p->desc->target.workers);
}

// ---- forward

// What a launch makes of all rows. NULL: not there, or not wanted.
typedef struct rows {
    const double *running; // [rows, RUNNING]
    const float *best;     // [rows, BEST]
    double *running_now;
    float *best_now;
    float *logits; // [rows, logits_row]
} rows;

static rows rows_of(const tr_lce_pass *p) {
    const tr_launch *launch = p->launch;
    return (rows){launch->in[SLICE_BEFORE], launch->in[SLICE_BEST],
                  launch->out[SLICE_RUNNING], launch->out[SLICE_BEST_NOW],
                  tr__lce_keeps_logits(p->desc) ? launch->out[SLICE_LOGITS] : NULL};
}

// log(e^a + e^b)
static double log_add(double a, double b) {
    double most = a > b ? a : b, least = a > b ? b : a;
    return most + log1p(exp(least - most));
}

// r: of all rows; place: of the target's logit in the row, -1: not in it.
static void fold_row(const rows *k, int64_t r, float *row, int64_t width,
                     int64_t place) {
    float top = tr__row_top(row, width);
    if (k->running_now) {
        float shift = tr__row_shift(top);
        double lse = shift + log(tr__row_exp(row, width, shift, false));
        const double *before = k->running ? k->running + r * RUNNING : NULL;
        double *now = k->running_now + r * RUNNING;
        now[RUNNING_LSE] = before ? log_add(before[RUNNING_LSE], lse) : lse;
        now[RUNNING_PICKED] =
            (before ? before[RUNNING_PICKED] : 0) + (place >= 0 ? row[place] : 0);
    }
    if (k->best_now) {
        const float *before = k->best ? k->best + r * BEST : NULL;
        float *now = k->best_now + r * BEST;
        bool ahead = !before || top > before[BEST_LOGIT];
        bool guessed = place >= 0 && tr__row_is_guess(row, place, top);
        now[BEST_LOGIT] = ahead ? top : before[BEST_LOGIT];
        now[BEST_IS_TARGET] = ahead ? guessed : before[BEST_IS_TARGET];
    }
}

// logits: of row `r`, where they may be kept already; NULL: it has none.
static void keep_row(const rows *k, int64_t r, const float *logits, int64_t width,
                     int64_t length) {
    if (!k->logits) {
        return;
    }
    float *kept = k->logits + r * length;
    int64_t there = logits ? width : 0;
    if (logits && logits != kept) {
        memcpy(kept, logits, (size_t)width * sizeof *kept);
    }
    memset(kept + there, 0, (size_t)(length - there) * sizeof *kept);
}

static void clear_row(const rows *k, int64_t r) {
    for (int i = 0; i < RUNNING && k->running_now; i++) {
        k->running_now[r * RUNNING + i] = 0;
    }
    for (int i = 0; i < BEST && k->best_now; i++) {
        k->best_now[r * BEST + i] = 0;
    }
}

static void fold(const tr_lce_pass *p) {
    const int32_t *targets = p->targets;
    int64_t width = p->products->dims.out, length = p->chunks->logits_row;
    rows k = rows_of(p);
    int threads = threads_of(p);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t r = 0; r < p->products->dims.rows; r++) {
        float *logits = p->logits + r * length;
        if (targets[r] >= 0) {
            fold_row(&k, tr__lce_row(p, r), logits, width,
                     tr__lce_slice_place(p->desc, targets[r]));
            keep_row(&k, tr__lce_row(p, r), logits, width, length);
        } else if (!p->row) {
            clear_row(&k, tr__lce_row(p, r));
            keep_row(&k, tr__lce_row(p, r), NULL, width, length);
        }
    }
}

// Rows without a target are in no gathered chunk.
static void clear_others(const tr_lce_pass *p) {
    const int32_t *targets = p->launch->in[HEAD_TARGETS];
    rows k = rows_of(p);
    for (int64_t r = 0; r < p->chunks->dims.rows; r++) {
        if (targets[r] < 0) {
            clear_row(&k, r);
            keep_row(&k, r, NULL, p->chunks->dims.out, p->chunks->logits_row);
        }
    }
}

// Logits are kept where the product writes them, if the chunk's rows are neighbours.
static void enter(tr_lce_pass *p, int64_t first) {
    tr__lce_enter(p, first);
    if (tr__lce_keeps_logits(p->desc)) {
        p->logits =
            (float *)p->launch->out[SLICE_LOGITS] + first * p->chunks->logits_row;
    }
}

static tr_status forward_prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    return tr__lce_chunks_create(desc, false, (tr_lce_chunks **)state, err);
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_lce_pass p = tr__lce_pass(desc, state, launch);
    tr_lce_list list;
    if (tr__lce_gathers(&p, &list)) {
        clear_others(&p);
        for (int64_t at = 0; at < list.count; at += p.products->dims.rows) {
            tr__lce_take(&p, &list, at);
            tr__lce_compute(&p);
            fold(&p);
        }
        return;
    }
    for (int64_t first = 0; first < p.chunks->dims.rows; first += p.chunks->rows) {
        enter(&p, first);
        if (tr__lce_any_target(&p)) {
            tr__lce_compute(&p);
        }
        fold(&p);
    }
}

// ---- backward

// The row's logits become their gradients. The sum is taken off in two steps, its f32
// part from each logit and the rest at once: that of a large sum would be lost in f32.
static void soften_row(float *row, int64_t width, int64_t place, const double *after,
                       const double *dafter) {
    float top = (float)after[RUNNING_LSE];
    double factor = dafter[RUNNING_LSE] * exp(top - after[RUNNING_LSE]);
    tr__row_exp(row, width, top, true);
    tr__row_close(row, width, (float)factor, place, (float)dafter[RUNNING_PICKED]);
}

// r: of all rows; there: it has a target.
static void put_before(const tr_lce_pass *p, int64_t r, bool there) {
    const double *before = p->launch->in[SLICE_BEFORE];
    const double *after = p->launch->in[SLICE_AFTER];
    const double *dafter = p->launch->in[SLICE_DAFTER];
    double *dbefore = p->launch->out[SLICE_DBEFORE];
    bool add = p->launch->accumulate >> SLICE_DBEFORE & 1;
    int64_t at = r * RUNNING;
    double lse = 0, picked = 0;
    if (!tr__lce_wants(p->desc, SLICE_DBEFORE)) {
        return;
    }
    if (there) {
        double share = exp(before[at + RUNNING_LSE] - after[at + RUNNING_LSE]);
        lse = dafter[at + RUNNING_LSE] * share;
        picked = dafter[at + RUNNING_PICKED];
    }
    double *to = dbefore + at;
    to[RUNNING_LSE] = add ? to[RUNNING_LSE] + lse : lse;
    to[RUNNING_PICKED] = add ? to[RUNNING_PICKED] + picked : picked;
}

// r: of all rows.
static void take_given(const tr_lce_pass *p, int64_t r, float *row) {
    int64_t width = p->products->dims.out;
    if (tr__lce_is_given_logits(p->desc)) {
        const float *given = p->launch->in[SLICE_GIVEN];
        memcpy(row, given + r * tr__lce_logits_row(width), (size_t)width * sizeof *row);
    }
}

static void soften(const tr_lce_pass *p, bool any) {
    const int32_t *targets = p->targets;
    const double *after = p->launch->in[SLICE_AFTER];
    const double *dafter = p->launch->in[SLICE_DAFTER];
    int64_t width = p->products->dims.out;
    int threads = threads_of(p);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t r = 0; r < p->products->dims.rows; r++) {
        float *row = p->logits + r * width;
        bool there = targets[r] >= 0;
        if (there || !p->row) {
            put_before(p, tr__lce_row(p, r), there);
        }
        if (there) {
            int64_t at = tr__lce_row(p, r) * RUNNING;
            take_given(p, tr__lce_row(p, r), row);
            soften_row(row, width, tr__lce_slice_place(p->desc, targets[r]), after + at,
                       dafter + at);
        } else if (any) {
            memset(row, 0, (size_t)width * sizeof *row);
        }
    }
}

static void put_others(const tr_lce_pass *p) {
    const int32_t *targets = p->launch->in[HEAD_TARGETS];
    for (int64_t r = 0; r < p->chunks->dims.rows; r++) {
        if (targets[r] < 0) {
            put_before(p, r, false);
        }
    }
}

static tr_status backward_prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    return tr__lce_chunks_create(desc, true, (tr_lce_chunks **)state, err);
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_lce_pass p = tr__lce_pass(desc, state, launch);
    tr_lce_list list;
    if (tr__lce_gathers(&p, &list)) {
        put_others(&p);
        tr__lce_run_gathered(&p, &list, soften);
    } else {
        tr__lce_run_backward(desc, state, launch, soften);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__matmul_has(TR_REAL) && tr__lce_slice_supports(desc, TR_REAL);
}

static bool backward_supports(const tr_op_desc *desc) {
    return tr__matmul_has(TR_REAL) && tr__lce_slice_backward_supports(desc, TR_REAL);
}

const tr_kernel TR_ISA_NAME(tr__lce_slice_kernel) = {
    .name = "head_slice.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__lce_chunks_forward_cost,
    .prepare = forward_prepare,
    .workspace = tr__lce_chunks_workspace,
    .launch = forward,
    .release = tr__lce_chunks_release,
};

const tr_kernel TR_ISA_NAME(tr__lce_slice_backward_kernel) = {
    .name = "head_slice_backward.cpu." TR_ISA_TEXT,
    .supports = backward_supports,
    .cost = tr__lce_chunks_backward_cost,
    .prepare = backward_prepare,
    .workspace = tr__lce_chunks_workspace,
    .launch = backward,
    .release = tr__lce_chunks_release,
};
