#include "ops/flat/gradient_squares/cpu_squares.h"

#include "backend/cpu/isa.h"
#include "base/checked.h"
#include "ops/flat/accumulate/cpu_convert.h"
#include "ops/operand.h"

extern const tr_kernel tr__gradient_squares_kernel, tr__sum_of_squares_kernel;

void tr__squares_reference(const float *x, int64_t count, int threads,
                           double *partials);
void tr__squares_generic(const float *x, int64_t count, int threads, double *partials);
#if defined(__x86_64__)
void tr__squares_avx2(const float *x, int64_t count, int threads, double *partials);
void tr__squares_avx512(const float *x, int64_t count, int threads, double *partials);
#endif

tr_squares_function tr__squares_choose(int level) {
    static const tr_squares_function table[TR_ISA_COUNT] = TR_ISA_TABLE(tr__squares);
    for (int i = level; i >= 0; i--) {
        if (i < TR_ISA_COUNT && table[i]) {
            return table[i];
        }
    }
    return tr__squares_reference;
}

static int64_t count_of(const tr_op_desc *desc) {
    return tr_shape_count(desc->in[0].shape);
}

// ---- by blocks

static bool supports(const tr_op_desc *desc) {
    return tr__sums_are_read(desc->in[0].dtype);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
    out->flops = 2 * (double)count_of(desc);
}

// Sums of another type piece by piece, each piece squared while it is in the cache.
static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_squares_function squares = tr__squares_choose(desc->target.level);
    int64_t count = count_of(desc);
    int64_t most = desc->in[0].dtype == TR_F32 ? count : TR_CONVERT_ELEMENTS;
    double *partials = launch->out[0];
    for (int64_t done = 0; done < count; done += most) {
        int64_t now = tr__min_i64(count - done, most);
        squares(tr__sums_at(desc, launch, done, now), now, desc->target.workers,
                partials + done / TR_NORM_BLOCK);
    }
}

// One for every instruction set: tr__squares_choose finds what is in it.
const tr_kernel tr__gradient_squares_kernel = {
    .name = "gradient_squares.cpu",
    .supports = supports,
    .cost = cost,
    .workspace = tr__sums_workspace,
    .launch = launch,
};

// ---- all in one

enum { BLOCKS_AT_ONCE = 512 };

static int64_t blocks_of(int64_t count) {
    return tr__ceil_div(count, TR_NORM_BLOCK);
}

static bool sum_supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static void launch_sum(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_squares_function squares = tr__squares_choose(desc->target.level);
    const int64_t most = (int64_t)BLOCKS_AT_ONCE * TR_NORM_BLOCK;
    const float *x = launch->in[0];
    double partials[BLOCKS_AT_ONCE], sum = 0;
    int64_t count = count_of(desc);
    for (int64_t done = 0; done < count; done += most) {
        int64_t now = tr__min_i64(count - done, most);
        squares(x + done, now, desc->target.workers, partials);
        sum = tr__squares_sum(sum, partials, blocks_of(now));
    }
    *(double *)launch->out[0] += sum;
}

const tr_kernel tr__sum_of_squares_kernel = {
    .name = "sum_of_squares.cpu",
    .supports = sum_supports,
    .cost = cost,
    .launch = launch_sum,
};
