#include "ops/nn/positions.h"
#include "ops/nn/text_pool/texts.h"

#include <string.h>

extern const tr_kernel tr__text_pool_reference, tr__text_pool_backward_reference;

// x: [length, width] of a sample; y: [width] of the text.
static void pool_text(const tr_pooled_text *t, const float *x, int64_t width, bool add,
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
            tr_pooled_text t = tr__text_at(&attr, places, begin, length);
            pool_text(&t, x, width, launch->accumulate & 1, y);
            begin = tr__text_next(places, begin, length);
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
            tr_pooled_text t = tr__text_at(&attr, places, begin, length);
            for (int64_t at = t.begin * width; at < t.end * width; at++) {
                dx[at] += (float)(t.weight * dy[at % width]);
            }
            begin = tr__text_next(places, begin, length);
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
