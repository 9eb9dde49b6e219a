// Where the fixed-point sums of reproducible mode stand. The exponent follows from the
// norm of the last applied step, which is the same however the batch was cut, so the
// sums' rounding is, too.
#include "base/checked.h"
#include "train/engine.h"
#include "train/loss_seed.h"

#include <math.h>

enum {
    TOP_BITS = 62,      // of a sum
    HEADROOM_BITS = 12, // a micro-batch's gradient may be so much larger than the norm
                        // of the last step before the step has to be run again
    COARSER_BITS = 16,
};

// Bits that the number of terms takes.
static int term_bits(const tr_engine *engine, int64_t batch) {
    int64_t terms = tr__ceil_div(batch, engine->plan->request.micro_batch);
    int bits = 0;
    while ((INT64_C(1) << bits) < terms) {
        bits++;
    }
    return bits;
}

int tr__engine_next_exponent(const tr_engine *engine, double norm) {
    int size = 0;
    frexp(norm, &size); // norm < 2^size
    return TOP_BITS - term_bits(engine, engine->batcher.batch) - HEADROOM_BITS - size;
}

// The loss's seed makes sums out of means that are at most twice too small.
int tr__engine_first_exponent(const tr_engine *engine) {
    return tr__engine_next_exponent(engine, engine->scale.scale);
}

// Sums hold as many terms as there are micro-batches, each scaled by the seed: both
// change with the batch.
int tr__engine_exponent_shift(const tr_engine *engine, int64_t from, int64_t to) {
    const tr_model *model = engine->plan->request.model;
    double seeds = tr__loss_seed_power(model, to) / tr__loss_seed_power(model, from);
    return term_bits(engine, from) - term_bits(engine, to) + (int)lround(log2(seeds));
}

int tr__engine_coarser(int exponent) {
    return exponent - COARSER_BITS;
}

void tr__engine_fix(tr_engine *engine) {
    tr_fixed fixed = {
        .scale = ldexp(1, engine->fixed_exponent),
        .limit = ldexp(1, TOP_BITS - term_bits(engine, engine->batcher.batch))};
    tr__executor_fix(engine->executor, fixed);
}
