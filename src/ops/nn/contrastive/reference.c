#include "ops/nn/contrastive/operands.h"

#include <math.h>
#include <string.h>

extern const tr_kernel tr__contrastive_reference, tr__contrastive_backward_reference,
    tr__contrastive_pool_reference, tr__contrastive_pool_backward_reference;

// The gradients that are wanted; NULL: not. As x, pool and scale.
typedef struct gradients {
    float *dx, *dpool;
    double *dscale;
} gradients;

// A text that is to be told its own from among the pool's.
typedef struct query {
    const float *x; // [width]
    float *dx;      // NULL: not wanted
    int64_t group;  // its own, in the pool
    tr_contrastive_side side;
    tr_contrastive_equal equal;
} query;

static double logit(const tr_contrastive_batch *b, const query *q, int64_t group,
                    int64_t text) {
    const float *y = tr__pool_text(b, group, text);
    double sum = 0;
    for (int64_t c = 0; c < b->width; c++) {
        sum += (double)q->x[c] * y[c];
    }
    return sum * b->factor;
}

static bool is_own(const query *q, int64_t group, int64_t text) {
    return group == q->group && text == q->side.own;
}

static bool counts(const tr_contrastive_batch *b, const query *q, int64_t group,
                   int64_t text) {
    if (!tr__pool_has(b, group)) {
        return false;
    }
    if (!b->attr.mask_equal || is_own(q, group, text)) {
        return true;
    }
    int64_t asks = text == q->side.own ? tr__pool_number(b, group, q->side.asks) : -1;
    return !tr__contrastive_is_equal(&q->equal, tr__pool_number(b, group, text), asks);
}

// The sum of e^logits in the form of `top` and a rest, and whether the own text has the
// largest of them.
typedef struct total {
    double top, sum, own;
    bool best;
} total;

static void add(total *t, double value, bool own) {
    bool larger = value > t->top;
    t->sum = larger ? t->sum * exp(t->top - value) + 1 : t->sum + exp(value - t->top);
    t->top = larger ? value : t->top;
    t->best = t->best && (value <= t->own || own);
    if (isnan(value)) {
        t->sum = t->top = NAN;
    }
}

static total add_up(const tr_contrastive_batch *b, const query *q) {
    total t = {
        .top = -INFINITY, .own = logit(b, q, q->group, q->side.own), .best = true};
    for (int64_t g = 0; g < b->groups; g++) {
        for (int64_t k = q->side.from; k < q->side.to; k++) {
            if (counts(b, q, g, k)) {
                add(&t, logit(b, q, g, k), is_own(q, g, k));
            }
        }
    }
    return t;
}

static void give_one(const tr_contrastive_batch *b, const query *q, double slope,
                     const float *y, const gradients *to) {
    float *dy = to->dpool ? to->dpool + (y - b->pool) : NULL;
    for (int64_t c = 0; c < b->width; c++) {
        if (q->dx) {
            q->dx[c] += (float)(slope * y[c]);
        }
        if (dy) {
            dy[c] += (float)(slope * q->x[c]);
        }
    }
}

// The gradients of a query, of the pool and of the scale.
static void give(const tr_contrastive_batch *b, const query *q, const total *t,
                 const gradients *to) {
    for (int64_t g = 0; g < b->groups; g++) {
        for (int64_t k = q->side.from; k < q->side.to; k++) {
            if (!counts(b, q, g, k)) {
                continue;
            }
            double value = logit(b, q, g, k);
            double share = exp(value - t->top) / t->sum - is_own(q, g, k);
            double slope = share * q->side.weight * b->seed;
            give_one(b, q, slope * b->factor, tr__pool_text(b, g, k), to);
            *to->dscale += slope * value;
        }
    }
}

static query query_of(const tr_contrastive_batch *b, int64_t group, int side,
                      const gradients *to) {
    tr_contrastive_side s = tr__contrastive_side(b, side);
    int64_t at = (group * b->texts + s.asks) * b->width;
    return (query){.x = b->x + at,
                   .dx = to && to->dx ? to->dx + at : NULL,
                   .group = tr__contrastive_place(b, group),
                   .side = s,
                   .equal = tr__contrastive_equal(b, &s, group)};
}

// to: NULL, only the loss is wanted
static void run(const tr_contrastive_batch *b, const gradients *to, double *sums) {
    for (int64_t i = 0; i < b->there && b->texts > TR_POSITIVE; i++) {
        for (int side = 0; side < tr__contrastive_sides(b); side++) {
            query q = query_of(b, i, side, to);
            total t = add_up(b, &q);
            sums[TR_SUM_LOSS] += q.side.weight * (t.top + log(t.sum) - t.own);
            sums[TR_SUM_CORRECT] += side == 0 && t.best;
            if (to) {
                give(b, &q, &t, to);
            }
        }
        sums[TR_SUM_COUNT] += 1;
    }
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_contrastive_batch b = tr__contrastive_batch(desc, launch);
    run(&b, NULL, launch->out[0]);
}

static void clear(const tr_op_desc *desc, const tr_launch *launch, int i) {
    if (launch->out[i] && !(launch->accumulate >> i & 1)) {
        memset(launch->out[i], 0, (size_t)tr_tensor_bytes(desc->out[i]));
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_contrastive_batch b = tr__contrastive_batch(desc, launch);
    double slope = 0;
    float *dscale = launch->out[PAIRS_DSCALE];
    const gradients to = {launch->out[PAIRS_DX], launch->out[PAIRS_DPOOL], &slope};
    clear(desc, launch, PAIRS_DX);
    clear(desc, launch, PAIRS_DPOOL);
    run(&b, &to, launch->out[PAIRS_SUMS]);
    if (dscale) {
        bool add_to = launch->accumulate >> PAIRS_DSCALE & 1;
        *dscale = (float)(add_to ? *dscale + slope : slope);
    }
}

// ---- the pool

static void pool(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0];
    float *out = launch->out[0];
    tr_shape shape = desc->in[0].shape;
    int64_t width = shape.dim[2], groups = desc->out[0].shape.dim[0];
    int64_t there = tr__rows_there(launch, shape.dim[0]);
    int64_t first = (int64_t)(launch->run->sample % (uint64_t)groups);
    const int32_t *number = launch->in[1];
    clear(desc, launch, 0);
    for (int64_t i = 0; i < there * shape.dim[1]; i++) {
        int64_t place = (first + i / shape.dim[1]) % groups;
        float mark[TR_TEXT_MARK];
        float *to =
            out + (place * shape.dim[1] + i % shape.dim[1]) * (width + TR_TEXT_MARK);
        tr__text_mark(number[i], mark);
        for (int64_t c = 0; c < width + TR_TEXT_MARK; c++) {
            to[c] += c < width ? x[i * width + c] : mark[c - width];
        }
    }
}

static void pool_backward(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    const float *dpool = launch->in[0];
    float *dx = launch->out[0];
    tr_shape shape = desc->out[0].shape;
    int64_t width = shape.dim[2], groups = desc->in[0].shape.dim[0];
    int64_t there = tr__rows_there(launch, shape.dim[0]);
    int64_t first = (int64_t)(launch->run->sample % (uint64_t)groups);
    clear(desc, launch, 0);
    for (int64_t i = 0; i < there * shape.dim[1]; i++) {
        int64_t place = (first + i / shape.dim[1]) % groups;
        const float *from =
            dpool + (place * shape.dim[1] + i % shape.dim[1]) * (width + TR_TEXT_MARK);
        for (int64_t c = 0; c < width; c++) {
            dx[i * width + c] += from[c];
        }
    }
}

// ---- kernels

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static void cost_pool(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel tr__contrastive_reference = {
    .name = "contrastive.reference",
    .supports = supports,
    .cost = tr__contrastive_cost,
    .launch = forward,
};

const tr_kernel tr__contrastive_backward_reference = {
    .name = "contrastive_backward.reference",
    .supports = supports,
    .cost = tr__contrastive_cost,
    .launch = backward,
};

const tr_kernel tr__contrastive_pool_reference = {
    .name = "contrastive_pool.reference",
    .supports = supports,
    .cost = cost_pool,
    .launch = pool,
};

const tr_kernel tr__contrastive_pool_backward_reference = {
    .name = "contrastive_pool_backward.reference",
    .supports = supports,
    .cost = cost_pool,
    .launch = pool_backward,
};
