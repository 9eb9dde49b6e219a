#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/pool/sizes.h"

#include <math.h>

extern const tr_kernel TR_ISA_NAME(tr__pool_kernel);
extern const tr_kernel TR_ISA_NAME(tr__pool_backward_kernel);

enum { WEIGHT = 4 };

static tr_vf larger(tr_vf best, tr_vf x) {
    return tr_v_select((x > best) | (x != x), x, best); // NaN is larger
}

// A window's maximum or sum; y: [channels].
static void take_window(const tr_pool_sizes *s, const float *x, int64_t b, tr_window w,
                        float *y, bool add) {
    int64_t c = 0;
    tr_vf scale = tr_v_set(s->max ? 1 : 1 / (float)(s->kernel_h * s->kernel_w));
    for (; c < s->channels; c += TR_VW) {
        int count = s->channels - c < TR_VW ? (int)(s->channels - c) : TR_VW;
        tr_vf value = tr_v_set(s->max ? -INFINITY : 0);
        for (int64_t i = w.top; i < w.bottom; i++) {
            for (int64_t j = w.left; j < w.right; j++) {
                const float *from = x + tr__pool_at(s, b, i, j) + c;
                tr_vf v =
                    count == TR_VW ? tr_v_load(from) : tr_v_load_part(from, count, 0);
                value = s->max ? larger(value, v) : value + v;
            }
        }
        value *= scale;
        value += add ? tr_v_load_part(y + c, count, 0) : tr_v_set(0);
        tr_v_store_part(y + c, value, count);
    }
}

static void launch_pool(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_pool_sizes s = tr__pool_sizes(desc, desc->in[0].shape);
    const float *x = launch->in[0]; // [batch, height, width, channels]
    float *y = launch->out[0];      // [batch, rows, columns, channels]
    int64_t windows = s.batch * s.rows * s.columns;
    int threads = tr__threads_for(tr_shape_count(desc->in[0].shape), WEIGHT,
                                  desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < windows; i++) {
        tr_window w = tr__pool_window(&s, i / s.columns % s.rows, i % s.columns);
        take_window(&s, x, i / s.columns / s.rows, w, y + i * s.channels,
                    launch->accumulate & 1);
    }
}

static void give_average(const tr_pool_sizes *s, const float *dy, float *dx, int64_t b,
                         tr_window w) {
    float scale = 1 / (float)(s->kernel_h * s->kernel_w);
    for (int64_t i = w.top; i < w.bottom; i++) {
        for (int64_t j = w.left; j < w.right; j++) {
            float *to = dx + tr__pool_at(s, b, i, j);
            for (int64_t c = 0; c < s->channels; c++) {
                to[c] += dy[c] * scale;
            }
        }
    }
}

static void give_max(const tr_pool_sizes *s, const float *dy, const float *x, float *dx,
                     int64_t b, tr_window w) {
    for (int64_t c = 0; c < s->channels; c++) {
        int64_t best = -1;
        for (int64_t i = w.top; i < w.bottom; i++) {
            for (int64_t j = w.left; j < w.right; j++) {
                int64_t at = tr__pool_at(s, b, i, j) + c;
                best = best < 0 || x[at] > x[best] || isnan(x[at]) ? at : best;
            }
        }
        dx[best] += dy[c];
    }
}

// Windows may overlap: an image is one thread's.
static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_pool_sizes s = tr__pool_sizes(desc, desc->in[1].shape);
    const float *dy = launch->in[0], *x = launch->in[1];
    float *dx = launch->out[0]; // [batch, height, width, channels]
    int64_t image = s.height * s.width * s.channels;
    int threads = tr__threads_for(s.batch * image, WEIGHT, desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t b = 0; b < s.batch; b++) {
        if (!(launch->accumulate & 1)) {
            memset(dx + b * image, 0, (size_t)image * sizeof *dx);
        }
        for (int64_t i = 0; i < s.rows * s.columns; i++) {
            const float *from = dy + (b * s.rows * s.columns + i) * s.channels;
            tr_window w = tr__pool_window(&s, i / s.columns, i % s.columns);
            if (s.max) {
                give_max(&s, from, x, dx, b, w);
            } else {
                give_average(&s, from, dx, b, w);
            }
        }
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel TR_ISA_NAME(tr__pool_kernel) = {
    .name = "pool.cpu." TR_ISA_TEXT,
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_pool,
};

const tr_kernel TR_ISA_NAME(tr__pool_backward_kernel) = {
    .name = "pool_backward.cpu." TR_ISA_TEXT,
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_backward,
};
