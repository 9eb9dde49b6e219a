// The effective batch of each step, where it changes during a run: by a list of steps,
// or by the noise scale.
#ifndef TR_RUN_BATCHES_H
#define TR_RUN_BATCHES_H

#include "data/order/batcher.h"

#include <stddef.h>

typedef struct tr_batch_change {
    int64_t step;  // once so many steps are done,
    int64_t batch; // this is the batch
} tr_batch_change;

typedef struct tr_batches {
    int64_t first;            // before any change
    tr_batch_change *changes; // [count], by step
    size_t count;
    bool adaptive;       // by the noise scale, not by a list
    int64_t least, most; // of an adaptive batch
    int64_t every;       // steps between its changes
    double share;        // of the noise scale
    int64_t multiple;    // m W: it is of whole micro-batches of all ranks
} tr_batches;

// By the list, after `done` steps.
int64_t tr__batches_at(const tr_batches *batches, int64_t done);
// The largest that there may be.
int64_t tr__batches_largest(const tr_batches *batches);

// The adaptive batch that follows `now` at a noise scale of `noise` samples (NAN: not
// known): share * noise, at most twice and at least half of what it was, as whole
// micro-batches; `now` where that is less than a quarter away.
int64_t tr__batches_follow(const tr_batches *batches, int64_t now, double noise);

// The nearest to `batch` that an adaptive one may be.
int64_t tr__batches_within(const tr_batches *batches, int64_t batch);

// How many samples so many steps take (what drop_last leaves out is not among them),
// and the steps of so many epochs. Of a list.
int64_t tr__batches_samples(const tr_batches *batches, const tr_batcher *batcher,
                            int64_t steps);
int64_t tr__batches_steps(const tr_batches *batches, const tr_batcher *batcher,
                          int64_t epochs);

#endif
