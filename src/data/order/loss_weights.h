// What the rows of a second loss weigh (ops/nn/auxiliary_loss): as much as the first
// loss has targets for each sample of the step. The loss of a step, one sum divided by
// the number of targets, then is the sum of two means. Targets are counted before the
// step, in all of its samples, so each rank knows the same weight whatever its part.
#ifndef TR_DATA_ORDER_LOSS_WEIGHTS_H
#define TR_DATA_ORDER_LOSS_WEIGHTS_H

#include "data/sources/dataset.h"

typedef struct tr_loss_weights {
    tr_dataset *dataset; // NULL: it has no such rows
    int target, weights; // places among its tensors
    void *row;           // memory for one sample
} tr_loss_weights;

// TR_MEMORY. Of a data set without such rows there is nothing to do.
tr_status tr__loss_weights_begin(tr_dataset *dataset, tr_loss_weights *out,
                                 tr_error *err);
void tr__loss_weights_end(tr_loss_weights *weights);

// Adds the number of targets that a sample has to *count. The errors of
// tr_dataset_read.
tr_status tr__loss_weights_count(const tr_loss_weights *weights, int64_t sample,
                                 int64_t *count, tr_error *err);
// Writes `weight` into rows [count of each tensor] of the data set.
void tr__loss_weights_put(const tr_loss_weights *weights, float weight, int64_t count,
                          void *const *rows);

#endif
