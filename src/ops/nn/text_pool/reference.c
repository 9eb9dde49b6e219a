#include "ops/nn/positions.h"
#include "ops/nn/text_pool/text_pool.h"

#include <string.h>

extern const tr_kernel tr__text_pool_reference, tr__text_pool_backward_reference;

// Text k of a sample: the tokens whose rows count, and what each counts.
typedef struct text {
    int64_t begin, end; // an empty one is not there
    double weight;
} text;

// Where the text behind the one that begins at `begin` begins. places: [S], NULL: the
// sample is one text.
static int64_t next_begin(const int32_t *places, int64_t begin, int64_t length) {
    int64_t at = begin < length ? begin + 1 : length;
    while (at < length && (!places || places[at] > 0)) {
        at++;
    }
    return at;
}

// The text that begins at `begin`.
static text text_at(const tr_text_pool_attr *attr, const int32_t *places, int64_t begin,
                    int64_t length) {
    int64_t end = next_begin(places, begin, length);
    text t = {begin, end, 1};
    if (begin == end) {
        return t;
    }
    if (attr->kind == TR_TEXT_MEAN) {
        t.weight = 1 / (double)(end - begin);
    } else if (attr->kind == TR_TEXT_CLS) {
        t.end = begin + 1;
    } else {
        t.begin = end - 1;
    }
    return t;
}

// x: [length, width] of a sample; y: [width] of the text.
static void pool_text(const text *t, const float *x, int64_t width, bool add,
                      float *y) {
    for (int64_t c = 0; c < width; c++) {
        double sum = 0;
        for (int64_t s = t->begin; s < t->end; s++) {
            sum += x[s * width + c];
        }
        sum *= t->weight;
        y[c] = (float)(add ? y[c] + sum : sum);
    }
}

static void pool(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_text_pool_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    const int32_t *positions = tr__launch_positions(desc, launch, 1); // [B, S]
    tr_shape shape = desc->in[0].shape;
    int64_t length = shape.dim[1], width = shape.dim[2];
    for (int64_t b = 0; b < shape.dim[0]; b++) {
        const float *x = (const float *)launch->in[0] + b * length * width;
        const int32_t *places = positions ? positions + b * length : NULL;
        int64_t begin = 0;
        for (int64_t k = 0; k < attr.texts; k++) {
            float *y = (float *)launch->out[0] + (b * attr.texts + k) * width;
            text t = text_at(&attr, places, begin, length);
            pool_text(&t, x, width, launch->accumulate & 1, y);
            begin = next_begin(places, begin, length);
        }
    }
}

static void pool_backward(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    tr_text_pool_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    const int32_t *positions = tr__launch_positions(desc, launch, 2); // [B, S]
    tr_shape shape = desc->out[0].shape;
    int64_t length = shape.dim[1], width = shape.dim[2];
    if (!(launch->accumulate & 1)) {
        memset(launch->out[0], 0, (size_t)tr_tensor_bytes(desc->out[0]));
    }
    for (int64_t i = 0; i < shape.dim[0]; i++) {
        float *dx = (float *)launch->out[0] + i * length * width; // [S, C]
        const int32_t *places = positions ? positions + i * length : NULL;
        int64_t begin = 0;
        for (int64_t k = 0; k < attr.texts; k++) {
            const float *dy =
                (const float *)launch->in[0] + (i * attr.texts + k) * width;
            text t = text_at(&attr, places, begin, length);
            for (int64_t at = t.begin * width; at < t.end * width; at++) {
                dx[at] += (float)(t.weight * dy[at % width]);
            }
            begin = next_begin(places, begin, length);
        }
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel tr__text_pool_reference = {
    .name = "text_pool.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = pool,
};

const tr_kernel tr__text_pool_backward_reference = {
    .name = "text_pool_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = pool_backward,
};
