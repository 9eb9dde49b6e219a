// The folders of tests/data/adapters (tools/goldens/adapters.py).
#ifndef TESTS_TRAIN_ADAPTER_FILES_H
#define TESTS_TRAIN_ADAPTER_FILES_H

#include "trial.h"

#include "files/safetensors/tensor_set.h"

#include <jansson.h>

#define ADAPTERS TR_TEST_DATA "/adapters"

// golden.json of a model. The caller releases it.
json_t *adapter_golden(const char *model);
// Copies a model's base to a new folder, its last byte (of a weight) changed.
void adapter_copy_base(const char *model, const char *folder);
// The sum of a tensor's elements, and of their squares.
void adapter_sums(const tr_tensor_set *set, const char *name, double *sum,
                  double *squares);
// Opens as much as can be opened; the first error. Closed by trial_close.
tr_status adapter_try(trial *t, const char *text, const char *resume, tr_error *err);

#endif
