// Other processes on the cores that a run computes on: a step whose threads wait for a
// core takes longer than it could, and the user can do something about it.
#ifndef TR_TRAIN_WATCH_CROWDING_H
#define TR_TRAIN_WATCH_CROWDING_H

#include "base/cores.h"
#include "train/watch/progress.h"

typedef struct tr_crowding {
    int threads;         // that compute
    tr_core_times since; // what is looked at begins here
    bool said;
} tr_crowding;

tr_crowding tr__crowding_begin(int threads);
// After each step: looks at the last five seconds, and says once what it sees.
void tr__crowding_step(tr_crowding *crowding, int64_t step, tr_progress_line *line);

// Do others leave `threads` threads too few of the cores? Half a core is left to what a
// system does by itself.
bool tr__crowding_is(const tr_core_times *before, const tr_core_times *after,
                     int threads);
// As many threads as others leave cores for, at least 1.
int tr__crowding_room(const tr_core_times *before, const tr_core_times *after);

#endif
