// The gradient noise scale of one step, from gradients of parts of its batch, each made
// by a step of its own: of a GPT-2 whose embedding is tied to its head.
#ifndef TESTS_TRAIN_NOISE_BY_HAND_H
#define TESTS_TRAIN_NOISE_BY_HAND_H

#include "samples.h"
#include "trial.h"

// How a batch is cut. Rank r has the accumulation steps [r * steps, (r + 1) * steps).
typedef struct noise_cut {
    int64_t ranks, batch, micro;
    int64_t wave; // over which tied tensors are measured; 0: they are left out
} noise_cut;

enum { NOISE_TEXT_MAX = 1024 };

// A run file of it. `execution` and `more`: members that are added, "" or ", ...".
void noise_run(char text[NOISE_TEXT_MAX], int64_t batch, int64_t micro,
               const char *execution, const char *more);
// tr S and |G|^2 of the run's first step. data: tokens of length 8 out of 31, in their
// order; it is left as it was.
void noise_by_hand(samples *data, const noise_cut *cut, double *trace,
                   double *gradient);
// The step says the same of this.
void noise_assert(const tr_step_result *step, double trace, double gradient,
                  const char *what);

#endif
