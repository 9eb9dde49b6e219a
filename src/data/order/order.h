// In which order an epoch takes the samples: a keyed permutation with random access.
//
// Position p of epoch e under a seed is a function of these three numbers and of how
// many samples there are: no table, no state, the same for every cut of the batch and
// on every rank. The global sample index is G = e * samples + p.
#ifndef TR_DATA_ORDER_ORDER_H
#define TR_DATA_ORDER_ORDER_H

#include "data/sources/dataset.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_order {
    int64_t samples; // in one epoch, 1..TR_SAMPLES_MAX
    bool shuffled;   // false: sample p at position p of every epoch
    uint64_t seed;
} tr_order;

// The sample at `position` (in [0, samples)) of `epoch`.
int64_t tr__order_sample(const tr_order *order, int64_t epoch, int64_t position);

// "shuffled" or "sequential"; NULL: shuffled. TR_USAGE names the nearest.
tr_status tr__order_parse(const char *name, bool *shuffled, tr_error *err);

#endif
