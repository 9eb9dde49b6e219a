// A model whose gradient noise is known: the loss of a sample x at parameters w is
// |w - x|^2 / 2, so its gradient is w - x, whose covariance is that of the samples.
#ifndef TESTS_TRAIN_QUADRATIC_H
#define TESTS_TRAIN_QUADRATIC_H

#include <tranche/data.h>
#include <tranche/model.h>

enum { QUADRATIC_WIDTH = 12 };

// w begins at 0.
extern const tr_model quadratic_model;

// Samples with independent normal coordinates. Fails the test when there is no memory.
tr_dataset *quadratic_data(int64_t count);
// Of these samples: |G|^2 at w = 0, and tr S.
double quadratic_gradient(void);
double quadratic_trace(void);

#endif
