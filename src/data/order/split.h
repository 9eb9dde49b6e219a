// One dataset as two: training and validation.
#ifndef TR_DATA_ORDER_SPLIT_H
#define TR_DATA_ORDER_SPLIT_H

#include <tranche/data.h>

#include <stdint.h>

typedef enum tr_split_kind {
    TR_SPLIT_TAIL,   // validation: the last samples
    TR_SPLIT_SPREAD, // validation: one sample, drawn by the seed, of each of as many
                     // equal runs; both parts keep the order. A function of position:
                     // no table
} tr_split_kind;

// Views over `whole`, which they retain; the caller still destroys it. `held`: samples
// for validation, in [1, samples of whole). On failure nothing is left.
tr_status tr__dataset_split(tr_dataset *whole, tr_split_kind kind, int64_t held,
                            uint64_t seed, tr_dataset **train, tr_dataset **validation,
                            tr_error *err);

#endif
