#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/embedding/embedding.h"
#include "ops/nn/embedding/support.h"

extern const tr_kernel TR_ISA_NAME(tr__embedding_kernel);
extern const tr_kernel TR_ISA_NAME(tr__embedding_backward_kernel);

enum {
    LINE = 16,   // floats in a cache line; threads of the backward own whole ones
    SHARE = 128, // columns a thread should own: with fewer, what one core's prefetcher
                 // fetches is another core's to write
};

// y = the sum of `count` rows, or += with `add`; y may be the first of them. parts:
// [count] of [width]
static void put_sum(const tr_real *const *parts, int count, tr_real *y, int64_t width,
                    bool add) {
    if (count == 0 && !add) {
        memset(y, 0, (size_t)width * sizeof *y);
    } else if (count == 1 && parts[0] != y) {
        tr_v_map2(tr_v_first, parts[0], parts[0], y, width, add);
    } else if (count > 1) {
        tr_v_map2(tr_v_add, parts[0], parts[1], y, width, add);
    }
    if (count > 2) {
        tr_v_map2(tr_v_first, parts[2], parts[2], y, width, true);
    }
}

static void embed_rows(const tr_op_desc *desc, const tr_launch *launch,
                       tr_range range) {
    const int32_t *ids = launch->in[0]; // [B, S]
    const tr_real *wte = launch->in[1]; // [V, C]
    // [P, C] or NULL
    const tr_real *wpe = tr__embedding_adds_positions(desc) ? launch->in[2] : NULL;
    const tr_real *before = launch->in[3]; // [B, S, C] or NULL
    const int32_t *positions = tr__launch_positions(desc, launch, 4);
    tr_real *y = launch->out[0]; // [B, S, C]
    int64_t tokens = desc->in[1].shape.dim[0];
    int64_t length = desc->in[0].shape.dim[1], width = desc->in[1].shape.dim[1];
    bool add = launch->accumulate & 1;
    for (int64_t row = range.begin; row < range.end; row++) {
        int64_t token = tr__embedding_row(desc, tokens, ids[row]);
        const tr_real *parts[3];
        int count = 0;
        if (before) {
            parts[count++] = before + row * width;
        }
        if (token >= 0) {
            parts[count++] = wte + token * width;
        }
        if (wpe) {
            int64_t at =
                tr__embedding_position(positions, launch->run->position, length, row);
            parts[count++] = wpe + at * width;
        }
        put_sum(parts, count, y + row * width, width, add);
    }
}

static void launch_embedding(const tr_op_desc *desc, void *state,
                             const tr_launch *launch) {
    (void)state;
    int64_t rows = tr_shape_count(desc->in[0].shape);
    int64_t width = desc->in[1].shape.dim[1];
    int threads = tr__threads_for(rows * width, 1, desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        embed_rows(desc, launch, tr__range_part(rows, 1, t, threads));
    }
}

static void clear_part(float *to, tr_shape shape, int part, int parts) {
    tr_range r = tr__range_part(tr_shape_count(shape), LINE, part, parts);
    memset(to + r.begin, 0, (size_t)(r.end - r.begin) * sizeof *to);
}

// The part of the tables that is written fresh starts at zero.
static void clear_fresh(const tr_op_desc *desc, const tr_launch *launch, int part,
                        int parts) {
    for (int i = 0; i < 2; i++) {
        if (launch->out[i] && !(launch->accumulate >> i & 1)) {
            clear_part(launch->out[i], desc->in[2 + i].shape, part, parts);
        }
    }
}

// Adds the columns [columns.begin, columns.end) of every row, in the order of rows, so
// the sums do not depend on how many threads share the columns.
static void scatter_columns(const tr_op_desc *desc, const tr_launch *launch,
                            tr_range columns) {
    const tr_real *dy = launch->in[0];  // [B, S, C]
    const int32_t *ids = launch->in[1]; // [B, S]
    const int32_t *positions = tr__launch_positions(desc, launch, 4);
    float *dwte = launch->out[0]; // [V, C] or NULL
    float *dwpe = launch->out[1]; // [P, C] or NULL
    int64_t rows = tr_shape_count(desc->in[1].shape);
    int64_t length = desc->in[1].shape.dim[1], width = desc->in[2].shape.dim[1];
    int64_t tokens = desc->in[2].shape.dim[0], count = columns.end - columns.begin;
    for (int64_t row = 0; count > 0 && row < rows; row++) {
        const tr_real *from = dy + row * width + columns.begin;
        int64_t token = tr__embedding_trained(desc, tokens, ids[row]);
        if (dwte && token >= 0) {
            float *to = dwte + token * width + columns.begin;
            tr_v_add_to(from, to, count, true);
        }
        if (dwpe) {
            int64_t at = tr__embedding_position(positions, 0, length, row);
            float *to = dwpe + at * width + columns.begin;
            tr_v_add_to(from, to, count, true);
        }
    }
}

// Elements that the backward moves: those of dy, and the tables it clears.
static int64_t backward_work(const tr_op_desc *desc, const tr_launch *launch) {
    int64_t work = 2 * tr_shape_count(desc->in[0].shape);
    for (int i = 0; i < 2; i++) {
        if (launch->out[i] && !(launch->accumulate >> i & 1)) {
            work += tr_shape_count(desc->in[2 + i].shape);
        }
    }
    return work;
}

static void launch_embedding_backward(const tr_op_desc *desc, void *state,
                                      const tr_launch *launch) {
    (void)state;
    int64_t width = desc->in[2].shape.dim[1];
    int threads = tr__threads_for(backward_work(desc, launch), 1, desc->target.workers);
    int sharers = width / SHARE < threads ? (int)(width / SHARE) : threads;
    sharers = sharers > 0 ? sharers : 1;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for
        for (int t = 0; t < threads; t++) {
            clear_fresh(desc, launch, t, threads);
        }
#pragma omp for
        for (int t = 0; t < sharers; t++) {
            scatter_columns(desc, launch, tr__range_part(width, LINE, t, sharers));
        }
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__embedding_supports(desc, 0, TR_REAL);
}

static bool supports_backward(const tr_op_desc *desc) {
    return tr__embedding_supports(desc, 1, TR_REAL);
}

const tr_kernel TR_ISA_NAME(tr__embedding_kernel) = {
    .name = "embedding.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__embedding_cost,
    .launch = launch_embedding,
};

const tr_kernel TR_ISA_NAME(tr__embedding_backward_kernel) = {
    .name = "embedding_backward.cpu." TR_ISA_TEXT,
    .supports = supports_backward,
    .cost = tr__embedding_backward_cost,
    .launch = launch_embedding_backward,
};
