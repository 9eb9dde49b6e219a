// Sums in fixed point, and in f32.
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/accumulate/fixed.h"
#include "ops/operand.h"

#include <float.h>
#include <math.h>

extern const tr_kernel TR_ISA_NAME(tr__accumulate_kernel);
void TR_ISA_NAME(tr__fixed_convert)(const int64_t *sums, int64_t count, double scale,
                                    int threads, float *x);

enum { PIECE = 1 << 14 }; // elements of one turn of a thread

// Bits of what a piece has met.
enum { TOO_LARGE = 1, NOT_FINITE = 2 };

// Products with a power of two are exact in f64. A term that does not fit is left out:
// its conversion would be undefined.
static int add_piece(const float *x, int64_t count, double scale, double limit,
                     bool add, int64_t *sums) {
    int bad = 0;
    for (int64_t i = 0; i < count; i++) {
        double term = rint((double)x[i] * scale);
        int fits = fabs(term) <= limit;
        int64_t whole = (int64_t)(fits ? term : 0);
        sums[i] = add ? sums[i] + whole : whole;
        int finite = fabs(term) <= DBL_MAX;
        bad |= fits ? 0 : finite ? TOO_LARGE : NOT_FINITE;
    }
    return bad;
}

static void accumulate(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0];
    int64_t *sums = launch->out[0];
    double *counts = launch->out[1];
    double scale = launch->run->fixed_scale, limit = launch->run->fixed_limit;
    int64_t count = tr_shape_count(desc->in[0].shape);
    int64_t pieces = (count + PIECE - 1) / PIECE;
    int threads = tr__threads_for(count, 1, desc->target.workers), bad = 0;
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(| : bad)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t first = p * PIECE, left = count - first;
        bad |= add_piece(x + first, left < PIECE ? left : PIECE, scale, limit, add,
                         sums + first);
    }
    if (counts) {
        counts[TR_ACCUMULATE_TOO_LARGE] += bad & TOO_LARGE ? 1 : 0;
        counts[TR_ACCUMULATE_NOT_FINITE] += bad & NOT_FINITE ? 1 : 0;
    }
}

// Of a step that is dropped, sums may be anything: signed overflow has no meaning in C,
// and unsigned sums have the same bits.
static void add_sums(const uint64_t *x, int64_t count, bool add, int threads,
                     uint64_t *sums) {
    threads = tr__threads_for(count, 1, threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        sums[i] = add ? sums[i] + x[i] : x[i];
    }
}

static void add_f32(const float *x, int64_t count, bool add, int threads, float *sums) {
    threads = tr__threads_for(count, 1, threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        sums[i] = add ? sums[i] + x[i] : x[i];
    }
}

static void launch_sums(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    if (desc->out[0].dtype == TR_F32) {
        add_f32(launch->in[0], tr_shape_count(desc->in[0].shape),
                launch->accumulate & 1, desc->target.workers, launch->out[0]);
    } else if (desc->in[0].dtype == TR_I64) {
        add_sums(launch->in[0], tr_shape_count(desc->in[0].shape),
                 launch->accumulate & 1, desc->target.workers, launch->out[0]);
    } else {
        accumulate(desc, state, launch);
    }
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype from = desc->in[0].dtype, to = desc->out[0].dtype;
    return (to == TR_F32 || to == TR_I64) && (from == TR_F32 || from == to);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__accumulate_cost(desc, out);
}

const tr_kernel TR_ISA_NAME(tr__accumulate_kernel) = {
    .name = "accumulate.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_sums,
};

void TR_ISA_NAME(tr__fixed_convert)(const int64_t *sums, int64_t count, double scale,
                                    int threads, float *x) {
    double back = 1 / scale;
    threads = tr__threads_for(count, 1, threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        x[i] = (float)(tr__fixed_to_odd(sums[i]) * back);
    }
}
