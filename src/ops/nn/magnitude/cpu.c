#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/magnitude/magnitude.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__magnitude_kernel);
extern const tr_kernel TR_ISA_NAME(tr__magnitude_gradient_kernel);

enum { LINE = 16 };

static int64_t padded(const tr_magnitude_sizes *s) {
    return (s->width + LINE - 1) / LINE * LINE;
}

static int threads_for(const tr_op_desc *desc) {
    return tr__threads_for(tr_shape_count(desc->in[0].shape), 1, desc->target.workers);
}

// A row of no length makes nothing.
static float over_length(float x, float squares) {
    return squares == 0 ? 0 : x / sqrtf(squares);
}

// ---- y = x by

// What columns are multiplied by: by [padded].
static void factors(const tr_magnitude_sizes *s, const tr_launch *launch, float *by) {
    for (int64_t c = 0; c < padded(s); c++) {
        by[c] = 1;
    }
    for (int i = 0; i < s->attr.layers; i++) {
        const tr_real *m = launch->in[1 + 2 * i];
        const float *squares = launch->in[2 + 2 * i];
        float *to = by + s->attr.first[i];
        for (int64_t k = 0; k < s->attr.count[i]; k++) {
            to[k] = over_length(tr_r_get(m[k]), squares[k]);
        }
    }
}

static size_t forward_workspace(const tr_op_desc *desc, const void *state) {
    tr_magnitude_sizes s = tr__magnitude_sizes(desc);
    (void)state;
    return (size_t)padded(&s) * sizeof(float);
}

static void launch_forward(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    tr_magnitude_sizes s = tr__magnitude_sizes(desc);
    const tr_real *x = launch->in[0]; // [rows, W]
    tr_real *y = launch->out[0];      // [rows, W], may be x
    float *by = launch->workspace;
    int threads = threads_for(desc);
    bool add = launch->accumulate & 1;
    (void)state;
    factors(&s, launch, by);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < s.rows; r++) {
        for (int64_t c = 0; c < s.width; c += TR_VW) {
            int left = tr_v_left(s.width, c);
            int64_t i = r * s.width + c;
            tr_vf value = tr_v_load_some_r(x + i, left) * tr_v_load(by + c);
            tr_v_put_some_r(y + i, value, left, add);
        }
    }
}

// ---- gradients of magnitudes

// Each thread has sums of dy x over its rows.
static size_t gradient_workspace(const tr_op_desc *desc, const void *state) {
    return (size_t)threads_for(desc) * forward_workspace(desc, state);
}

// products: [padded]
static void sum_rows(const tr_magnitude_sizes *s, const tr_launch *launch,
                     tr_range range, float *products) {
    const tr_real *dy = launch->in[0], *x = launch->in[1]; // [rows, W]
    memset(products, 0, (size_t)padded(s) * sizeof *products);
    for (int64_t r = range.begin; r < range.end; r++) {
        for (int64_t c = 0; c < s->width; c += TR_VW) {
            int left = tr_v_left(s->width, c);
            tr_vf d = tr_v_load_some_r(dy + r * s->width + c, left);
            tr_vf v = tr_v_load_some_r(x + r * s->width + c, left);
            tr_v_store(products + c, tr_v_load(products + c) + d * v);
        }
    }
}

// Of column c over all threads. parts: [threads][padded]
static float whole(const tr_magnitude_sizes *s, const float *parts, int threads,
                   int64_t c) {
    float sum = 0;
    for (int t = 0; t < threads; t++) {
        sum += parts[t * padded(s) + c];
    }
    return sum;
}

static void launch_gradient(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    tr_magnitude_sizes s = tr__magnitude_sizes(desc);
    float *parts = launch->workspace;
    int threads = threads_for(desc);
    (void)state;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        sum_rows(&s, launch, tr__range_part(s.rows, 1, t, threads),
                 parts + t * padded(&s));
    }
    for (int i = 0; i < s.attr.layers; i++) {
        const float *squares = launch->in[TR_MAGNITUDE_S + i];
        float *dm = launch->out[i];
        for (int64_t k = 0; dm && k < s.attr.count[i]; k++) {
            float sum = whole(&s, parts, threads, s.attr.first[i] + k);
            sum = over_length(sum, squares[k]);
            dm[k] = launch->accumulate >> i & 1 ? dm[k] + sum : sum;
        }
    }
}

// ---- tables

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, TR_MAGNITUDE_PLAIN, 0);
}

static bool supports_gradient(const tr_op_desc *desc) {
    uint32_t all = ~0u;
    return tr__desc_real(desc, TR_REAL, all << TR_MAGNITUDE_S, all);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 2, out);
}

const tr_kernel TR_ISA_NAME(tr__magnitude_kernel) = {
    .name = "magnitude.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .workspace = forward_workspace,
    .launch = launch_forward,
};

const tr_kernel TR_ISA_NAME(tr__magnitude_gradient_kernel) = {
    .name = "magnitude_gradient.cpu." TR_ISA_TEXT,
    .supports = supports_gradient,
    .cost = cost,
    .workspace = gradient_workspace,
    .launch = launch_gradient,
};
