#include "ops/nn/attention/sizes.h"
#include "ops/nn/positions.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__attention_reference, tr__attention_backward_reference;

// One head of one sample. q, k, v: [S, D], rows as qkv's apart.
typedef struct head {
    const tr_attention_sizes *sizes;
    const float *q, *k, *v;
    tr_draw draw;
    int64_t index;
} head;

static head head_at(const tr_attention_sizes *s, const float *qkv,
                    const tr_run_context *run, int64_t row, int64_t index) {
    const float *first = qkv + row * s->context * s->pitch;
    int64_t shared = index / s->group * s->depth;
    return (head){
        .sizes = s,
        .q = first + index * s->depth,
        .k = first + s->keys + shared,
        .v = first + s->values + shared,
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
    return dot(h->q + query * s->pitch, h->k + key * s->pitch, s->depth) /
           sqrt((double)s->depth);
}

static double multiplier(const head *h, int64_t query, int64_t key) {
    uint64_t element = tr__attention_element(h->sizes, h->index, query, key);
    return tr__draw_multiplier(&h->draw, element);
}

// p: [S], the probabilities of the keys that are seen, times their multipliers. Returns
// the log of the sum of exponentials.
static double probabilities(const head *h, int64_t query, double *p) {
    double top = -INFINITY, sum = 0;
    int64_t oldest = tr__attention_oldest(h->sizes, query);
    int64_t end = tr__attention_key_end(h->sizes, query);
    for (int64_t key = oldest; key < end; key++) {
        p[key] = score(h, query, key);
        top = fmax(top, p[key]);
    }
    for (int64_t key = oldest; key < end; key++) {
        sum += exp(p[key] - top);
    }
    double total = top + log(sum);
    for (int64_t key = oldest; key < end; key++) {
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
    const float *qkv = launch->in[0]; // [B, S, pitch]
    float *y = launch->out[0];        // [B, S, C]
    float *lse = launch->out[1];      // [B, heads, S] or NULL
    double *p = launch->workspace;    // [S]
    const int32_t *positions = tr__launch_positions(desc, launch, 1);
    tr_attention_sizes all = tr__attention_sizes(desc->in[0].shape, desc->attr);
    for (int64_t i = 0; i < all.batch * all.heads * all.context; i++) {
        int64_t query = i % all.context, pair = i / all.context, row = pair / all.heads;
        tr_attention_sizes s = tr__attention_of(&all, positions, row);
        head h = head_at(&s, qkv, launch->run, row, pair % s.heads);
        float *to = y + (row * s.context + query) * s.width + h.index * s.depth;
        double total = probabilities(&h, query, p);
        int64_t end = tr__attention_key_end(&s, query);
        for (int64_t d = 0; d < s.depth; d++) {
            double sum = 0;
            for (int64_t key = tr__attention_oldest(&s, query); key < end; key++) {
                sum += p[key] * h.v[key * s.pitch + d];
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
    double dp = m * dot(dy, h->v + key * s->pitch, s->depth);
    double delta = dot(dy, y, s->depth);
    return (pair_gradient){p * m, p * (dp - delta) / sqrt((double)s->depth)};
}

static void add_scaled(double *sum, double scale, const float *x, int64_t depth) {
    for (int64_t d = 0; d < depth; d++) {
        sum[d] += scale * x[d];
    }
}

// The gradient of the query of one place. dq: [D].
static void query_gradient(const head *h, const head_results *r, int64_t place,
                           double *dq) {
    int64_t depth = h->sizes->depth;
    memset(dq, 0, (size_t)depth * sizeof *dq);
    int64_t end = tr__attention_key_end(h->sizes, place);
    for (int64_t key = tr__attention_oldest(h->sizes, place); key < end; key++) {
        pair_gradient g = pair_at(h, r, place, key);
        add_scaled(dq, g.through, h->k + key * h->sizes->pitch, depth);
    }
}

// Adds what one head gives the gradients of the key and the value of one place. dk, dv:
// [D].
static void add_key_gradients(const head *h, const head_results *r, int64_t place,
                              double *dk, double *dv) {
    const tr_attention_sizes *s = h->sizes;
    int64_t end = tr__attention_newest(s, place);
    for (int64_t query = tr__attention_first_query(s, place); query < end; query++) {
        pair_gradient g = pair_at(h, r, query, place);
        add_scaled(dk, g.through, h->q + query * s->pitch, s->depth);
        add_scaled(dv, g.kept, r->dy + query * s->width, s->depth);
    }
}

static void put_all(float *to, const double *values, int64_t count, bool add) {
    for (int64_t i = 0; i < count; i++) {
        put(to + i, values[i], add);
    }
}

// What the backward reads of one head of one sample.
static head_results results_at(const tr_attention_sizes *s, const tr_launch *launch,
                               int64_t row, int64_t index) {
    int64_t first = row * s->context * s->width + index * s->depth;
    return (head_results){
        .dy = (const float *)launch->in[0] + first,
        .y = (const float *)launch->in[2] + first,
        .lse = (const float *)launch->in[3] + (row * s->heads + index) * s->context,
    };
}

// The gradients of one place of one sample. sums: [3, D].
static void place_gradients(const tr_attention_sizes *s, const tr_launch *launch,
                            int64_t row, int64_t place, double *sums) {
    const float *qkv = launch->in[1]; // [B, S, pitch]
    float *to = (float *)launch->out[0] + (row * s->context + place) * s->pitch;
    double *dq = sums, *dk = dq + s->depth, *dv = dk + s->depth;
    bool add = launch->accumulate & 1;
    for (int64_t pair = 0; pair < s->pairs; pair++) {
        memset(dk, 0, 2 * (size_t)s->depth * sizeof *dk);
        for (int64_t g = 0; g < s->group; g++) {
            int64_t index = pair * s->group + g;
            head h = head_at(s, qkv, launch->run, row, index);
            head_results r = results_at(s, launch, row, index);
            query_gradient(&h, &r, place, dq);
            put_all(to + index * s->depth, dq, s->depth, add);
            add_key_gradients(&h, &r, place, dk, dv);
        }
        put_all(to + s->keys + pair * s->depth, dk, s->depth, add);
        put_all(to + s->values + pair * s->depth, dv, s->depth, add);
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
    const int32_t *positions = tr__launch_positions(desc, launch, 4);
    tr_attention_sizes all = tr__attention_sizes(desc->in[1].shape, desc->attr);
    for (int64_t i = 0; i < all.batch * all.context; i++) {
        tr_attention_sizes s = tr__attention_of(&all, positions, i / all.context);
        place_gradients(&s, launch, i / s.context, i % s.context, launch->workspace);
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
