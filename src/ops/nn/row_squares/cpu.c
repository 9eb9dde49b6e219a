// Row by row, each made in f32 first. Of a weight [in, out], rows are columns: a few of
// them are gathered at once, so that what a line of memory holds is used.
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "base/checked.h"
#include "base/quantized.h"
#include "ops/nn/row_squares/row_squares.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__row_squares_kernel);

enum { TILE = 16 }; // rows at once

// ---- rows of the weight, as f32: out [in]

static void few_bits_row(const tr_row_squares_sizes *s, const void *w, int64_t row,
                         float *out) {
    tr_quantization kind = s->attr.kind;
    tr_quantized_layout at = tr__quantized_layout(kind, s->rows * s->in);
    const unsigned char *tensor = (const unsigned char *)w + s->attr.tensor;
    int64_t first = row * s->in, end = first + s->in, size = tr__quantized_block(kind);
    for (int64_t i = first; i < end;) {
        int64_t last = tr__min_i64(end, (i / size + 1) * size);
        float scale = tr__quantized_scale(kind, &at, tensor, i / size);
        for (; i < last; i++) {
            float code = kind == TR_QUANTIZED_Q8_0
                             ? (float)(int8_t)tensor[i]
                             : tr__nf4_values[tr__nf4_code(tensor, i)];
            // What is multiplied is of the type that computes.
            out[i - first] = tr_r_get(tr_r_of(code * scale));
        }
    }
}

// rows: [TILE][in], of which `count` are filled.
static void tile_rows(const tr_row_squares_sizes *s, const void *w, int64_t first,
                      int64_t count, float *rows) {
    const tr_real *real = w;
    int64_t at = s->attr.first + first;
    if (s->attr.kind == TR_QUANTIZED_NOT && s->attr.in_out) {
        for (int64_t i = 0; i < s->in; i++) {
            for (int64_t r = 0; r < count; r++) {
                rows[r * s->in + i] = tr_r_get(real[i * s->all + at + r]);
            }
        }
        return;
    }
    for (int64_t r = 0; r < count; r++) {
        if (s->attr.kind != TR_QUANTIZED_NOT) {
            few_bits_row(s, w, first + r, rows + r * s->in);
        } else {
            tr_v_add_to(real + (at + r) * s->in, rows + r * s->in, s->in, false);
        }
    }
}

// ---- their squared lengths

// w: [in], a: [rank, in], b: [rank].
static float squared_length(const tr_row_squares_sizes *s, const float *w,
                            const tr_real *a, const tr_real *b) {
    tr_vf squares = tr_v_set(0);
    for (int64_t i = 0; i < s->in; i += TR_VW) {
        int left = tr_v_left(s->in, i);
        tr_vf sum = tr_v_set(0);
        for (int64_t k = 0; k < s->rank; k++) {
            sum += tr_v_load_some_r(a + k * s->in + i, left) * tr_r_get(b[k]);
        }
        float part[TR_VW] = {0};
        memcpy(part, w + i, (size_t)left * sizeof *part);
        sum = tr_v_load(part) + sum * s->attr.scale;
        squares += sum * sum;
    }
    return tr_v_sum(squares);
}

static int threads_for(const tr_op_desc *desc) {
    tr_row_squares_sizes s = tr__row_squares_sizes(desc);
    return tr__threads_for(s.rows * s.in, s.rank + 1, desc->target.workers);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    size_t row = (size_t)tr__row_squares_sizes(desc).in * sizeof(float);
    return (size_t)threads_for(desc) * TILE * row;
}

static size_t packed(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)tr__row_squares_sizes(desc).rows * sizeof(float);
}

// out: [rows]
static void find(const tr_op_desc *desc, const tr_launch *launch, float *out,
                 bool add) {
    tr_row_squares_sizes s = tr__row_squares_sizes(desc);
    const tr_real *a = launch->in[1], *b = launch->in[2];
    int threads = threads_for(desc);
    int64_t tiles = (s.rows + TILE - 1) / TILE;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        float *rows = (float *)launch->workspace + t * TILE * s.in;
        for (int64_t tile = t; tile < tiles; tile += threads) {
            int64_t first = tile * TILE, count = tr__min_i64(TILE, s.rows - first);
            tile_rows(&s, launch->in[0], first, count, rows);
            for (int64_t r = 0; r < count; r++) {
                float sum =
                    squared_length(&s, rows + r * s.in, a, b + (first + r) * s.rank);
                out[first + r] = add ? out[first + r] + sum : sum;
            }
        }
    }
}

static void launch_squares(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    bool add = launch->accumulate & 1;
    float *out = launch->out[0], *kept = launch->packed;
    (void)state;
    if (!desc->packs) {
        find(desc, launch, out, add);
        return;
    }
    if (!launch->is_packed) {
        find(desc, launch, kept, false);
    }
    for (int64_t o = 0; o < desc->out[0].shape.dim[0]; o++) {
        out[o] = add ? out[o] + kept[o] : kept[o];
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 1 << 0);
}

const tr_kernel TR_ISA_NAME(tr__row_squares_kernel) = {
    .name = "row_squares.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__row_squares_cost,
    .workspace = workspace,
    .packed = packed,
    .launch = launch_squares,
};
