// The stages of a pipeline, walked together: each with its own tape and clock. What two
// or all of them exchange begins when the last of them has come to it; a rank that is
// there waits meanwhile ("bubble"), and holds what its plan says.
#ifndef TR_SIM_STAGES_H
#define TR_SIM_STAGES_H

#include "sim/walk.h"

// Walks [count] tapes, one of each stage, or the only one, until all have ended.
// walks: [count], begun. TR_INTERNAL: stages wait for each other in a circle, or one
// for what no other does; two of them are named. TR_MEMORY.
tr_status tr__walk_stages(tr_sim_walk *walks, size_t count, tr_error *err);

#endif
