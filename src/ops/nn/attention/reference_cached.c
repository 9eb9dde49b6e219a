#include "ops/nn/attention/cached.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__attention_cached_reference;

typedef struct work {
    tr_attention_cached_sizes sizes;
    const float *qkv; // [B, S, pitch]
    float *cache;     // [B, 2 pairs, room, D]
    float *y;         // [B, S, C]
    double *p;        // [room] of each key that a query sees, at its place
} work;

static void append(const work *w, int64_t sample, int64_t row) {
    const tr_attention_sizes *s = &w->sizes.now;
    const float *from = w->qkv + (sample * s->context + row) * s->pitch + s->keys;
    int64_t position = w->sizes.position + row;
    int64_t place = tr__attention_cached_place(&w->sizes, position);
    for (int64_t head = 0; head < 2 * s->pairs; head++) {
        float *to = w->cache + tr__attention_cached_head(&w->sizes, sample, head) +
                    place * s->depth;
        memcpy(to, from + head * s->depth, (size_t)s->depth * sizeof *to);
    }
}

// p: the probabilities of the keys that the query sees.
static void probabilities(const work *w, const float *q, const float *keys,
                          int64_t position) {
    int64_t depth = w->sizes.now.depth;
    int64_t oldest = tr__attention_cached_oldest(&w->sizes, position);
    double top = -INFINITY, sum = 0;
    for (int64_t key = oldest; key <= position; key++) {
        int64_t at = tr__attention_cached_place(&w->sizes, key);
        double score = 0;
        for (int64_t d = 0; d < depth; d++) {
            score += (double)q[d] * keys[at * depth + d];
        }
        w->p[at] = score / sqrt((double)depth);
        top = fmax(top, w->p[at]);
    }
    for (int64_t key = oldest; key <= position; key++) {
        double *p = &w->p[tr__attention_cached_place(&w->sizes, key)];
        *p = exp(*p - top);
        sum += *p;
    }
    for (int64_t key = oldest; key <= position; key++) {
        w->p[tr__attention_cached_place(&w->sizes, key)] /= sum;
    }
}

static void attend(const work *w, int64_t sample, int64_t row, int64_t head) {
    const tr_attention_sizes *s = &w->sizes.now;
    int64_t position = w->sizes.position + row, shared = head / s->group;
    int64_t at = sample * s->context + row;
    const float *keys = w->cache + tr__attention_cached_head(&w->sizes, sample, shared);
    const float *values =
        w->cache + tr__attention_cached_head(&w->sizes, sample, shared + s->pairs);
    probabilities(w, w->qkv + at * s->pitch + head * s->depth, keys, position);
    for (int64_t d = 0; d < s->depth; d++) {
        double sum = 0;
        int64_t key = tr__attention_cached_oldest(&w->sizes, position);
        for (; key <= position; key++) {
            int64_t place = tr__attention_cached_place(&w->sizes, key);
            sum += w->p[place] * values[place * s->depth + d];
        }
        w->y[at * s->width + head * s->depth + d] = (float)sum;
    }
}

static void launch_cached(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    work w = {.sizes = tr__attention_cached_sizes(desc, launch),
              .qkv = launch->in[0],
              .cache = launch->out[1],
              .y = launch->out[0],
              .p = launch->workspace};
    const tr_attention_sizes *s = &w.sizes.now;
    if (!tr__attention_cached_fits(&w.sizes, launch)) {
        return;
    }
    for (int64_t i = 0; i < s->batch * s->context; i++) {
        append(&w, i / s->context, i % s->context);
    }
    for (int64_t i = 0; i < s->batch * s->context * s->heads; i++) {
        int64_t row = i / s->heads;
        attend(&w, row / s->context, row % s->context, i % s->heads);
    }
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)desc->in[1].shape.dim[2] * sizeof(double);
}

const tr_kernel tr__attention_cached_reference = {
    .name = "attention_cached.reference",
    .supports = tr__desc_f32,
    .cost = tr__attention_cached_cost,
    .workspace = workspace,
    .launch = launch_cached,
};
