// A model on features, once with its loss inside and once without: there the tests
// compute the loss.
#ifndef TESTS_TRAIN_OUTSIDE_H
#define TESTS_TRAIN_OUTSIDE_H

#include "own_model.h"

#include <tranche/engine.h>

enum { OUTSIDE_SAMPLES = 96, OUTSIDE_ROWS = 8 }; // rows of a micro-batch, at most

typedef struct outside_data {
    float x[OUTSIDE_SAMPLES][OWN_FEATURES];
    int32_t label[OUTSIDE_SAMPLES];
} outside_data;

void outside_fill(outside_data *data);
// A dataset of it, which the caller destroys.
tr_dataset *outside_dataset(outside_data *data);

// The mean cross-entropy of rows [rows, OWN_CLASSES] of logits, f32 whatever the run
// computes in, and its gradient.
double outside_loss(const tr_output *logits, const int32_t *labels, float *gradient);

// One micro-batch: forward, the loss, backward. The rows begin at sample `first`.
// *loss may be NULL.
tr_status outside_micro(tr_engine *engine, const outside_data *data, int64_t first,
                        int64_t rows, double *loss, tr_error *err);
// A step of g full micro-batches of m rows, which begin at sample `first`.
tr_status outside_step(tr_engine *engine, const outside_data *data, int64_t first,
                       int64_t g, int64_t m, tr_step_result *result, tr_error *err);

#endif
