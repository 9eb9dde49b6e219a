// Checkpoints as files: where the newest is, and how far two are apart, the model's
// states included.
#ifndef TESTS_TRAIN_STORED_H
#define TESTS_TRAIN_STORED_H

#include "files/safetensors/tensor_set.h"

#include <limits.h>

// The folder of the newest checkpoint of an out folder. Returns `folder`.
const char *stored_latest(const char *out, char folder[PATH_MAX]);

// The values of a tensor of so many elements, for the caller to free.
double *stored_values(const tr_tensor_set *set, const char *name, int64_t count);

// The L2 distance of all tensors of two files.
double stored_distance(const char *a, const char *b);

// Every tensor of two files, both of which began with those of a third: the L2 distance
// is at most `tolerance` of the way, and `rounding` of the tensor's norm.
void stored_assert_close(const char *start, const char *want, const char *got,
                         double tolerance, double rounding);

// The same bytes.
void stored_assert_same(const char *folder_a, const char *folder_b, const char *file);

#endif
