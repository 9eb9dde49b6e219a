// The angles of neighbouring positions differ by one frequency: cosines and sines go
// from position to position by a product of complex numbers in double, and begin anew
// from libm at each block of positions, so that no thread count changes a bit.
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "base/checked.h"
#include "ops/nn/positions.h"
#include "ops/nn/rope/rope.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__rope_kernel);
extern const tr_kernel TR_ISA_NAME(tr__rope_backward_kernel);

enum { BLOCK = 128, WEIGHT = 2, LINE = 16 };

// One thread's part of the workspace, [D/2] each, padded.
typedef struct angles {
    double *cosine, *sine;           // of the position
    double *step_cosine, *step_sine; // of one frequency
    float *c, *s;                    // of the position, rounded
} angles;

typedef struct rows {
    tr_rope_attr attr;
    const tr_real *x;
    tr_real *y;
    int64_t context, width;
    int64_t position;         // of the first row of a sample
    const int32_t *positions; // [B, S] in documents; NULL: each sample is one
    double size;              // of the turned elements
    int direction;            // 1, or -1: back
    bool add;
} rows;

static int64_t padded(int64_t half) {
    return tr__round_up(half, LINE);
}

static int64_t thread_bytes(int64_t half) {
    return padded(half) * (int64_t)(4 * sizeof(double) + 2 * sizeof(float));
}

static angles angles_at(char *base, int64_t half) {
    double *d = (double *)base;
    int64_t n = padded(half);
    float *f = (float *)(d + 4 * n);
    return (angles){d, d + n, d + 2 * n, d + 3 * n, f, f + n};
}

static void begin_at(const rows *w, int64_t position, angles *a) {
    for (int64_t j = 0; j < w->attr.depth / 2; j++) {
        double frequency = tr__rope_frequency(&w->attr, j);
        double angle = (double)position * frequency;
        a->cosine[j] = w->size * cos(angle);
        a->sine[j] = w->size * w->direction * sin(angle);
        a->step_cosine[j] = cos(frequency);
        a->step_sine[j] = w->direction * sin(frequency);
    }
}

// At place 0, where nothing is turned; the steps stay.
static void begin_document(const rows *w, angles *a) {
    for (int64_t j = 0; j < w->attr.depth / 2; j++) {
        a->cosine[j] = w->size;
        a->sine[j] = 0;
    }
}

static void round_angles(int64_t half, angles *a) {
    for (int64_t j = 0; j < half; j++) {
        a->c[j] = (float)a->cosine[j];
        a->s[j] = (float)a->sine[j];
    }
}

static void go_on(int64_t half, angles *a) {
    for (int64_t j = 0; j < half; j++) {
        double c = a->cosine[j], s = a->sine[j];
        a->cosine[j] = c * a->step_cosine[j] - s * a->step_sine[j];
        a->sine[j] = s * a->step_cosine[j] + c * a->step_sine[j];
    }
}

// x, y: [D], of one head; y may be x.
static void turn_head(const angles *a, int64_t half, const tr_real *x, tr_real *y,
                      bool add) {
    for (int64_t j = 0; j < half; j += TR_VW) {
        int count = tr_v_left(half, j);
        tr_vf c = tr_v_load(a->c + j), s = tr_v_load(a->s + j);
        tr_vf low = tr_v_load_some_r(x + j, count),
              high = tr_v_load_some_r(x + half + j, count);
        tr_v_put_some_r(y + j, low * c - high * s, count, add);
        tr_v_put_some_r(y + half + j, high * c + low * s, count, add);
    }
}

// Rows [first, end) of one sample.
static void turn_block(const rows *w, int64_t sample, int64_t first, int64_t end,
                       angles *a) {
    int64_t depth = w->attr.depth, turned = w->attr.heads * depth;
    const int32_t *places = w->positions ? w->positions + sample * w->context : NULL;
    begin_at(w, places ? places[first] : w->position + first, a);
    for (int64_t row = first; row < end; row++) {
        if (places && places[row] == 0) {
            begin_document(w, a);
        }
        int64_t at = (sample * w->context + row) * w->width;
        round_angles(depth / 2, a);
        for (int64_t c = 0; c < turned; c += depth) {
            turn_head(a, depth / 2, w->x + at + c, w->y + at + c, w->add);
        }
        if (w->add || w->x != w->y) {
            const tr_real *rest = w->x + at + turned;
            tr_v_map2(tr_v_first, rest, rest, w->y + at + turned, w->width - turned,
                      w->add);
        }
        go_on(depth / 2, a);
    }
}

static int threads_of(const tr_op_desc *desc) {
    return tr__threads_for(tr_shape_count(desc->in[0].shape), WEIGHT,
                           desc->target.workers);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    tr_rope_attr attr;
    (void)state;
    memcpy(&attr, desc->attr, sizeof attr);
    return (size_t)(threads_of(desc) * thread_bytes(attr.depth / 2));
}

static void turn(const tr_op_desc *desc, const tr_launch *launch, int direction) {
    tr_shape shape = desc->in[0].shape; // [B, S, W]
    rows w = {.x = launch->in[0],
              .y = launch->out[0],
              .context = shape.dim[1],
              .width = shape.dim[2],
              .position = launch->run->position,
              .positions = tr__launch_positions(desc, launch, 1),
              .direction = direction,
              .add = launch->accumulate & 1};
    memcpy(&w.attr, desc->attr, sizeof w.attr);
    w.size = w.attr.scaling == TR_ROPE_YARN ? w.attr.attention : 1;
    int threads = threads_of(desc);
    int64_t blocks = tr__ceil_div(w.context, BLOCK);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        int64_t half = w.attr.depth / 2;
        angles a = angles_at((char *)launch->workspace + t * thread_bytes(half), half);
        tr_range part = tr__range_part(shape.dim[0] * blocks, 1, t, threads);
        for (int64_t b = part.begin; b < part.end; b++) {
            int64_t first = b % blocks * BLOCK;
            turn_block(&w, b / blocks, first, tr__min_i64(first + BLOCK, w.context),
                       &a);
        }
    }
}

static void launch_rope(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    turn(desc, launch, 1);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    turn(desc, launch, -1);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 3, out);
}

const tr_kernel TR_ISA_NAME(tr__rope_kernel) = {
    .name = "rope.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .workspace = workspace,
    .launch = launch_rope,
};

const tr_kernel TR_ISA_NAME(tr__rope_backward_kernel) = {
    .name = "rope_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .workspace = workspace,
    .launch = launch_backward,
};
