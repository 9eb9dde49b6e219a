// Copies of everything that an update changes, and how far two of them are apart.
#ifndef TESTS_TRAIN_SNAPSHOT_H
#define TESTS_TRAIN_SNAPSHOT_H

#include "trial.h"

enum { SNAPSHOT_PARTS = 3 }; // values, then up to two optimizer states

typedef struct snapshot_tensor {
    char *name;
    int64_t count;
    float *part[SNAPSHOT_PARTS]; // [count], NULL: the optimizer has no such state
} snapshot_tensor;

typedef struct snapshot {
    snapshot_tensor *tensors;
    size_t count;
} snapshot;

// Tensors as files hold them: those that the plan has in slices are put together.
void snapshot_take(snapshot *s, const trial *t);
// The same, put together from the parts of all ranks. Collective.
void snapshot_gather(snapshot *s, const trial *t);
// The gradients as they lie in the accumulators, in place of the values.
void snapshot_take_gradients(snapshot *s, const trial *t);
// Takes what trial i has come to, closes it, and compares with the first: the same.
void snapshot_end(snapshot *ends, int i, trial *t);
void snapshot_free(snapshot *s);

const snapshot_tensor *snapshot_find(const snapshot *s, const char *name);

// The same bits in every tensor and every optimizer state.
void snapshot_assert_same(const snapshot *a, const snapshot *b);

// Per tensor, the L2 distance of `cut` from `uncut` is at most `tolerance` of the
// distance of `uncut` from `start` (NULL: from zero); per optimizer state, at most
// `tolerance` of the norm of `uncut`, whose states began at zero. GPT-2's key bias is
// left out: its gradient is zero but for rounding, which Adam amplifies. Returns the
// largest share of a tensor's values.
double snapshot_assert_close(const snapshot *start, const snapshot *uncut,
                             const snapshot *cut, double tolerance, const char *what);

#endif
