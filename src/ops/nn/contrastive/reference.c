#include "ops/nn/contrastive/contrastive.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_kernel tr__contrastive_reference, tr__contrastive_backward_reference,
    tr__contrastive_pool_reference, tr__contrastive_pool_backward_reference;

enum { ANCHOR, POSITIVE };

// A launch of the loss or of its backward.
typedef struct batch {
    tr_contrastive_attr attr;
    const float *x, *pool; // [B, texts, width], [groups, texts, row]
    float *dx, *dpool;     // likewise; NULL: not wanted
    int64_t texts, width, groups;
    int64_t row;   // numbers of a text in the pool
    int64_t there; // groups of the micro-batch
    int64_t first; // place of its first group
    bool marked;   // a text of the pool that is not there has 0 behind it
    double seed;
} batch;

static batch batch_of(const tr_op_desc *desc, const tr_launch *launch) {
    tr_shape shape = desc->in[0].shape;
    bool pool = desc->in_count > 2 && desc->in[2].dtype != TR_NONE;
    batch b = {.x = launch->in[0],
               .pool = pool ? launch->in[2] : launch->in[0],
               .texts = shape.dim[1],
               .width = shape.dim[2],
               .row = shape.dim[2] + pool,
               .there = tr__rows_there(launch, shape.dim[0]),
               .marked = pool,
               .seed = launch->run->loss_seed};
    memcpy(&b.attr, desc->attr, sizeof b.attr);
    b.groups = pool ? desc->in[2].shape.dim[0] : b.there;
    b.first = pool ? (int64_t)(launch->run->sample % (uint64_t)b.groups) : 0;
    return b;
}

static int64_t place_of(const batch *b, int64_t group) {
    return (b->first + group) % b->groups;
}

static const float *pool_text(const batch *b, int64_t group, int64_t text) {
    return b->pool + (group * b->texts + text) * b->row;
}

static bool is_there(const batch *b, int64_t group) {
    return !b->marked || pool_text(b, group, ANCHOR)[b->width] > 0;
}

// A text that is to be told its own from among the pool's texts [from, to).
typedef struct query {
    const float *x; // [width]
    float *dx;      // NULL: not wanted
    int64_t group;  // its own, in the pool
    int64_t from, to, own;
    double weight; // of its loss
} query;

static double logit(const batch *b, const query *q, int64_t group, int64_t text) {
    const float *y = pool_text(b, group, text);
    double sum = 0;
    for (int64_t c = 0; c < b->width; c++) {
        sum += (double)q->x[c] * y[c];
    }
    return sum / b->attr.temperature;
}

// The sum of e^logits in the form of `top` and a rest, and whether the own text has the
// largest of them.
typedef struct total {
    double top, sum, own;
    bool best;
} total;

static total add_up(const batch *b, const query *q) {
    total t = {.top = -INFINITY, .own = logit(b, q, q->group, q->own), .best = true};
    for (int64_t g = 0; g < b->groups; g++) {
        for (int64_t k = q->from; k < q->to && is_there(b, g); k++) {
            double value = logit(b, q, g, k);
            bool larger = value > t.top;
            t.sum =
                larger ? t.sum * exp(t.top - value) + 1 : t.sum + exp(value - t.top);
            t.top = larger ? value : t.top;
            t.best = t.best && (value <= t.own || (g == q->group && k == q->own));
            if (isnan(value)) {
                t.sum = t.top = NAN;
            }
        }
    }
    return t;
}

// The gradients of a query and of the pool.
static void give(const batch *b, const query *q, const total *t) {
    for (int64_t g = 0; g < b->groups; g++) {
        for (int64_t k = q->from; k < q->to && is_there(b, g); k++) {
            bool own = g == q->group && k == q->own;
            double share = exp(logit(b, q, g, k) - t->top) / t->sum - own;
            double slope = share * q->weight * b->seed / b->attr.temperature;
            const float *y = pool_text(b, g, k);
            float *dy = b->dpool ? b->dpool + (y - b->pool) : NULL;
            for (int64_t c = 0; c < b->width; c++) {
                if (q->dx) {
                    q->dx[c] += (float)(slope * y[c]);
                }
                if (dy) {
                    dy[c] += (float)(slope * q->x[c]);
                }
            }
        }
    }
}

static query query_of(const batch *b, int64_t group, int64_t text) {
    int64_t at = (group * b->texts + text) * b->width;
    bool anchor = text == ANCHOR;
    return (query){.x = b->x + at,
                   .dx = b->dx ? b->dx + at : NULL,
                   .group = place_of(b, group),
                   .from = anchor ? POSITIVE : ANCHOR,
                   .to = anchor ? b->texts : ANCHOR + 1,
                   .own = anchor ? POSITIVE : ANCHOR,
                   .weight = b->attr.symmetric ? 0.5 : 1};
}

static void run(const batch *b, bool backward, double *sums) {
    for (int64_t i = 0; i < b->there && b->texts > POSITIVE; i++) {
        for (int64_t k = ANCHOR; k <= POSITIVE; k++) {
            if (k == POSITIVE && !b->attr.symmetric) {
                continue;
            }
            query q = query_of(b, i, k);
            total t = add_up(b, &q);
            sums[TR_SUM_LOSS] += q.weight * (t.top + log(t.sum) - t.own);
            sums[TR_SUM_CORRECT] += k == ANCHOR && t.best;
            if (backward) {
                give(b, &q, &t);
            }
        }
        sums[TR_SUM_COUNT] += 1;
    }
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    batch b = batch_of(desc, launch);
    run(&b, false, launch->out[0]);
}

static void clear(const tr_op_desc *desc, const tr_launch *launch, int i) {
    if (launch->out[i] && !(launch->accumulate >> i & 1)) {
        memset(launch->out[i], 0, (size_t)tr_tensor_bytes(desc->out[i]));
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    batch b = batch_of(desc, launch);
    b.dx = launch->out[0];
    b.dpool = launch->out[1];
    clear(desc, launch, 0);
    clear(desc, launch, 1);
    run(&b, true, launch->out[2]);
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
    clear(desc, launch, 0);
    for (int64_t i = 0; i < there * shape.dim[1]; i++) {
        int64_t place = (first + i / shape.dim[1]) % groups;
        float *to = out + (place * shape.dim[1] + i % shape.dim[1]) * (width + 1);
        for (int64_t c = 0; c <= width; c++) {
            to[c] += c < width ? x[i * width + c] : 1;
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
            dpool + (place * shape.dim[1] + i % shape.dim[1]) * (width + 1);
        for (int64_t c = 0; c < width; c++) {
            dx[i * width + c] += from[c];
        }
    }
}

// ---- kernels

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    bool pooled = desc->in_count > 2 && desc->in[2].dtype != TR_NONE;
    double against = pooled ? (double)tr_shape_count(desc->in[2].shape)
                            : (double)tr_shape_count(desc->in[0].shape);
    tr__desc_cost(desc, 0, out);
    out->flops = 8 * (double)desc->in[0].shape.dim[0] * against;
}

static void cost_pool(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel tr__contrastive_reference = {
    .name = "contrastive.reference",
    .supports = supports,
    .cost = cost,
    .launch = forward,
};

const tr_kernel tr__contrastive_backward_reference = {
    .name = "contrastive_backward.reference",
    .supports = supports,
    .cost = cost,
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
