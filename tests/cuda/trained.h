// What a run has come to, and how far the same run on a GPU may be from it.
#ifndef TEST_CUDA_TRAINED_H
#define TEST_CUDA_TRAINED_H

#include "train/snapshot.h"

enum { TRAINED_STEPS_MOST = 8 };

typedef struct trained {
    tr_step_result steps[TRAINED_STEPS_MOST];
    int count;
    snapshot start, end;
} trained;

// Makes so many steps of an open run. On several ranks it is collective.
void trained_make(trial *t, int steps, trained *out);
// The high-water marks of the arenas are what the plan says. (The ledger's host also
// has the data.)
void trained_check_arenas(const trial *t);
void trained_free(trained *t);
// In f32: losses and gradient norms within 1e-5, parameters within 1e-4 of their
// change.
void trained_assert_close(const trained *cpu, const trained *cuda, const char *what);

#endif
