#include "ops/attention/sizes.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__attention_reference, tr__attention_backward_reference;

// One head of one sample. q, k, v: [S, D], rows 3 C apart.
typedef struct head {
    const tr_attention_sizes *sizes;
    const float *q, *k, *v;
    tr_draw draw;
    int64_t index;
} head;

static head head_at(const tr_attention_sizes *s, const float *qkv,
                    const tr_run_context *run, int64_t row, int64_t index) {
    const float *q = qkv + row * s->context * 3 * s->width + index * s->depth;
    return (head){
        .sizes = s,
        .q = q,
        .k = q + s->width,
        .v = q + 2 * s->width,
        .draw = tr__draw_open(run, row, s->draw_id, s->dropout),
        .index = index,
    };
}

// a . b, both [depth].
static double dot(const float *a, const float *b, int64_t depth) {
    double sum = 0;
    for (int64_t d = 0; d < depth; d++) {
        sum += (double)a[d] * b[d];
    }
    return sum;
}

static double score(const head *h, int64_t query, int64_t key) {
    const tr_attention_sizes *s = h->sizes;
    int64_t pitch = 3 * s->width;
    return dot(h->q + query * pitch, h->k + key * pitch, s->depth) /
           sqrt((double)s->depth);
}

static double multiplier(const head *h, int64_t query, int64_t key) {
    uint64_t element = tr__attention_element(h->sizes, h->index, query, key);
    return tr__draw_multiplier(&h->draw, element);
}

// p: [query + 1], the probabilities of the keys times their multipliers. Returns
// the log of the sum of exponentials.
static double probabilities(const head *h, int64_t query, double *p) {
    double top = -INFINITY, sum = 0;
    for (int64_t key = 0; key <= query; key++) {
        p[key] = score(h, query, key);
        top = fmax(top, p[key]);
    }
    for (int64_t key = 0; key <= query; key++) {
        sum += exp(p[key] - top);
    }
    double total = top + log(sum);
    for (int64_t key = 0; key <= query; key++) {
        p[key] = exp(p[key] - total) * multiplier(h, query, key);
    }
    return total;
}

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)desc->in[0].shape.dim[1] * sizeof(double);
}

static void launch_attention(const tr_op_desc *desc, void *state,
                             const tr_launch *launch) {
    (void)state;
    const float *qkv = launch->in[0]; // [B, S, 3 C]
    float *y = launch->out[0];        // [B, S, C]
    float *lse = launch->out[1];      // [B, heads, S] or NULL
    double *p = launch->workspace;    // [S]
    tr_attention_sizes s = tr__attention_sizes(desc->in[0].shape, desc->attr);
    for (int64_t i = 0; i < s.batch * s.heads * s.context; i++) {
        int64_t query = i % s.context, pair = i / s.context, row = pair / s.heads;
        head h = head_at(&s, qkv, launch->run, row, pair % s.heads);
        float *to = y + (row * s.context + query) * s.width + h.index * s.depth;
        double total = probabilities(&h, query, p);
        for (int64_t d = 0; d < s.depth; d++) {
            double sum = 0;
            for (int64_t key = 0; key <= query; key++) {
                sum += p[key] * h.v[key * 3 * s.width + d];
            }
            put(to + d, sum, launch->accumulate & 1);
        }
        if (lse) {
            put(lse + i, total, launch->accumulate & 2);
        }
    }
}

// The head's rows that the backward also reads.
typedef struct head_results {
    const float *dy, *y; // [S, D], rows C apart
    const float *lse;    // [S]
} head_results;

// What goes back from one query and one key: dv gets kept * dy, and with `through`, the
// gradient of q . k, dq gets through * k and dk through * q.
typedef struct pair_gradient {
    double kept, through;
} pair_gradient;

static pair_gradient pair_at(const head *h, const head_results *r, int64_t query,
                             int64_t key) {
    const tr_attention_sizes *s = h->sizes;
    const float *dy = r->dy + query * s->width, *y = r->y + query * s->width;
    double p = exp(score(h, query, key) - r->lse[query]);
    double m = multiplier(h, query, key);
    double dp = m * dot(dy, h->v + key * 3 * s->width, s->depth);
    double delta = dot(dy, y, s->depth);
    return (pair_gradient){p * m, p * (dp - delta) / sqrt((double)s->depth)};
}

static void add_scaled(double *sum, double scale, const float *x, int64_t depth) {
    for (int64_t d = 0; d < depth; d++) {
        sum[d] += scale * x[d];
    }
}

// The gradients of q, k and v of one place in the context. sums: [3, D].
static void place_gradients(const head *h, const head_results *r, int64_t place,
                            double *sums) {
    const tr_attention_sizes *s = h->sizes;
    int64_t pitch = 3 * s->width, depth = s->depth;
    for (int64_t d = 0; d < 3 * depth; d++) {
        sums[d] = 0;
    }
    for (int64_t key = 0; key <= place; key++) {
        pair_gradient g = pair_at(h, r, place, key);
        add_scaled(sums, g.through, h->k + key * pitch, depth);
    }
    for (int64_t query = place; query < s->context; query++) {
        pair_gradient g = pair_at(h, r, query, place);
        add_scaled(sums + depth, g.through, h->q + query * pitch, depth);
        add_scaled(sums + 2 * depth, g.kept, r->dy + query * s->width, depth);
    }
}

static size_t backward_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_attention_sizes s = tr__attention_sizes(desc->in[1].shape, desc->attr);
    return 3 * (size_t)s.depth * sizeof(double);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0], *y = launch->in[2]; // [B, S, C]
    const float *qkv = launch->in[1];                    // [B, S, 3 C]
    const float *lse = launch->in[3];                    // [B, heads, S]
    float *dqkv = launch->out[0];                        // [B, S, 3 C]
    double *sums = launch->workspace;                    // [3, D]
    tr_attention_sizes s = tr__attention_sizes(desc->in[1].shape, desc->attr);
    for (int64_t i = 0; i < s.batch * s.heads * s.context; i++) {
        int64_t place = i % s.context, pair = i / s.context, row = pair / s.heads;
        head h = head_at(&s, qkv, launch->run, row, pair % s.heads);
        int64_t first = row * s.context * s.width + h.index * s.depth;
        head_results r = {dy + first, y + first, lse + pair * s.context};
        place_gradients(&h, &r, place, sums);
        float *to = dqkv + (row * s.context + place) * 3 * s.width + h.index * s.depth;
        for (int64_t d = 0; d < 3 * s.depth; d++) {
            int64_t part = d / s.depth;
            put(to + part * s.width + d % s.depth, sums[d], launch->accumulate & 1);
        }
    }
}

const tr_kernel tr__attention_reference = {
    .name = "attention.reference",
    .supports = tr__desc_f32,
    .cost = tr__attention_cost,
    .workspace = workspace,
    .launch = launch_attention,
};

const tr_kernel tr__attention_backward_reference = {
    .name = "attention_backward.reference",
    .supports = tr__desc_f32,
    .cost = tr__attention_backward_cost,
    .workspace = backward_workspace,
    .launch = launch_backward,
};
