// Every tensor of an engine, read and written by its name.
#ifndef TESTS_TRAIN_READING_H
#define TESTS_TRAIN_READING_H

#include "snapshot.h"

// After a step that was applied: what tr_engine_read gives of values and optimizer
// states is what the ranks' parts make, ranges are parts of the whole, the gradients
// have the norm that the step told, but for `tolerance`, and what is written is read
// again, on all ranks; in the end all is as it was. Collective.
void reading_check(trial *t, double grad_norm, double tolerance);

#endif
