// Sums are in double, block of columns by block, each row read once.
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "ops/nn/positions.h"
#include "ops/nn/text_pool/texts.h"

#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__text_pool_kernel);
extern const tr_kernel TR_ISA_NAME(tr__text_pool_backward_kernel);

enum { BLOCK = 64 }; // columns

static tr_text_pool_attr attr_of(const tr_op_desc *desc) {
    tr_text_pool_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return attr;
}

// x: [length, width] of a sample; y: [width] of the text.
static void pool_text(const tr_pooled_text *t, const tr_real *x, int64_t width,
                      bool add, tr_real *y) {
    for (int64_t first = 0; first < width; first += BLOCK) {
        double sum[BLOCK] = {0};
        int64_t count = width - first < BLOCK ? width - first : BLOCK;
        for (int64_t s = t->begin; s < t->end; s++) {
            const tr_real *row = x + s * width + first;
            for (int64_t c = 0; c < count; c++) {
                sum[c] += tr_r_get(row[c]);
            }
        }
        for (int64_t c = 0; c < count; c++) {
            double before = add ? tr_r_get(y[first + c]) : 0;
            y[first + c] = tr_r_of((float)(before + sum[c] * t->weight));
        }
    }
}

static void pool(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_text_pool_attr attr = attr_of(desc);
    const int32_t *positions = tr__launch_positions(desc, launch, 1); // [B, S]
    tr_shape shape = desc->in[0].shape;
    int64_t length = shape.dim[1], width = shape.dim[2];
    int threads = tr__threads_for(tr_shape_count(shape), 1, desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t b = 0; b < shape.dim[0]; b++) {
        const tr_real *x = (const tr_real *)launch->in[0] + b * length * width;
        const int32_t *places = positions ? positions + b * length : NULL;
        int64_t begin = 0;
        for (int64_t k = 0; k < attr.texts; k++) {
            tr_real *y = (tr_real *)launch->out[0] + (b * attr.texts + k) * width;
            tr_pooled_text t = tr__text_at(&attr, places, begin, length);
            pool_text(&t, x, width, launch->accumulate & 1, y);
            begin = tr__text_next(places, begin, length);
        }
    }
}

// Adds what the text's rows get of dy [width]; dx: [length, width] of the sample.
static void spread_text(const tr_pooled_text *t, const tr_real *dy, int64_t width,
                        tr_real *dx) {
    float weight = (float)t->weight;
    for (int64_t s = t->begin; s < t->end; s++) {
        tr_real *row = dx + s * width;
        for (int64_t c = 0; c < width; c++) {
            row[c] = tr_r_of(tr_r_get(row[c]) + weight * tr_r_get(dy[c]));
        }
    }
}

static void pool_backward(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    tr_text_pool_attr attr = attr_of(desc);
    const int32_t *positions = tr__launch_positions(desc, launch, 2); // [B, S]
    tr_shape shape = desc->out[0].shape;
    int64_t length = shape.dim[1], width = shape.dim[2];
    int threads = tr__threads_for(tr_shape_count(shape), 1, desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t b = 0; b < shape.dim[0]; b++) {
        tr_real *dx = (tr_real *)launch->out[0] + b * length * width;
        const int32_t *places = positions ? positions + b * length : NULL;
        int64_t begin = 0;
        if (!(launch->accumulate & 1)) {
            memset(dx, 0, (size_t)(length * width) * sizeof *dx);
        }
        for (int64_t k = 0; k < attr.texts; k++) {
            const tr_real *dy =
                (const tr_real *)launch->in[0] + (b * attr.texts + k) * width;
            tr_pooled_text t = tr__text_at(&attr, places, begin, length);
            spread_text(&t, dy, width, dx);
            begin = tr__text_next(places, begin, length);
        }
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel TR_ISA_NAME(tr__text_pool_kernel) = {
    .name = "text_pool.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = pool,
};

const tr_kernel TR_ISA_NAME(tr__text_pool_backward_kernel) = {
    .name = "text_pool_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = pool_backward,
};
