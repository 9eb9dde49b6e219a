// What the backward of the loss starts from.
#ifndef TR_TRAIN_LOSS_SEED_H
#define TR_TRAIN_LOSS_SEED_H

#include <tranche/model.h>

#include <stdint.h>

// The divisor 2^k of the loss's gradient: the first power of two not below `batch`
// samples times the targets of one sample. It does not depend on how the batch is cut.
double tr__loss_seed_power(const tr_model *model, int64_t batch);
// The same where the caller's loss is a mean over each of so many micro-batches.
double tr__loss_seed_power_of_means(int64_t micros);

#endif
