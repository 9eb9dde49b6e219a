#include "data/order/batcher.h"

#include "base/checked.h"

tr_batch tr__batcher_next(const tr_batcher *batcher, int64_t cursor) {
    int64_t epoch = cursor / batcher->samples;
    int64_t position = cursor % batcher->samples;
    int64_t left = batcher->samples - position;
    if (left < batcher->batch && batcher->drop_last && position > 0) {
        epoch++;
        left = batcher->samples;
        cursor = epoch * batcher->samples;
    }
    int64_t count = tr__min_i64(left, batcher->batch);
    return (tr_batch){cursor, count, epoch, cursor + count};
}

int64_t tr__batcher_steps_per_epoch(const tr_batcher *batcher) {
    if (batcher->batch >= batcher->samples) {
        return 1;
    }
    // The quotient first: the sum of samples and batch may not fit.
    bool rest = batcher->samples % batcher->batch > 0 && !batcher->drop_last;
    return batcher->samples / batcher->batch + rest;
}

int64_t tr__batcher_cursor(const tr_batcher *batcher, int64_t steps) {
    if (steps == 0) {
        return 0;
    }
    // Where the last of these steps ends, not where the next begins: the skip over a
    // dropped rest belongs to the next.
    int64_t per_epoch = tr__batcher_steps_per_epoch(batcher);
    int64_t epoch = (steps - 1) / per_epoch, step = (steps - 1) % per_epoch;
    int64_t first = step * batcher->batch;
    int64_t count = tr__min_i64(batcher->batch, batcher->samples - first);
    return epoch * batcher->samples + first + count;
}
