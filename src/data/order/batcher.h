// Which samples an optimizer step takes: a function of one integer, the cursor.
//
// The cursor counts global sample indices passed so far, those skipped by drop_last
// included. A step never reaches over the end of an epoch: the last one is short, or
// left out with drop_last. A batch that is larger than the data set makes every step
// one whole epoch, with drop_last too (there would be no step at all: run files that
// ask for it are refused).
#ifndef TR_DATA_ORDER_BATCHER_H
#define TR_DATA_ORDER_BATCHER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_batcher {
    int64_t samples; // in one epoch, > 0
    int64_t batch;   // effective batch T, > 0
    bool drop_last;
} tr_batcher;

typedef struct tr_batch {
    int64_t first; // global sample index of the first row
    int64_t count; // rows, 1..T
    int64_t epoch; // from 0
    int64_t next;  // the cursor after this step
} tr_batch;

// The step at `cursor` (>= 0).
tr_batch tr__batcher_next(const tr_batcher *batcher, int64_t cursor);
int64_t tr__batcher_steps_per_epoch(const tr_batcher *batcher);
// The cursor after `steps` steps from the start.
int64_t tr__batcher_cursor(const tr_batcher *batcher, int64_t steps);

#endif
