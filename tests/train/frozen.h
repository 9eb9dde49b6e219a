// Runs with frozen parameters beside runs that compute all gradients and give the same
// parameters a rate of 0.
#ifndef TESTS_TRAIN_FROZEN_H
#define TESTS_TRAIN_FROZEN_H

#include "trial.h"

#include <tranche/comm.h>

typedef struct frozen_world {
    const char *model, *frozen; // as a run file has them
    bool tokens;
} frozen_world;

enum { FROZEN_WORLDS = 11 };

// What is frozen of each model: all but the last blocks; what lies between trained
// parts; tied tensors; all but biases.
extern const frozen_world frozen_worlds[FROZEN_WORLDS];

// Of a run: its batch and micro-batch, and further keys of its file, "" for none.
typedef struct frozen_way {
    int batch, micro;
    const char *keys;
    bool beside; // the host's stream has a thread, and updates are deferred
} frozen_way;

// The same bits in all that is trained, its states included; what is frozen stays as
// it was, and has no states. comm: NULL: one rank.
void frozen_compare(const frozen_world *world, const frozen_way *way, tr_comm *comm);

// A folder of the first world's weights in bf16: `out`/checkpoints/latest.
void frozen_folder(const char *out);

#endif
