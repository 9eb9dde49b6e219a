// How two checkpoints' states differ.
#ifndef TR_FILES_CHECKPOINT_DIFF_STATE_H
#define TR_FILES_CHECKPOINT_DIFF_STATE_H

#include <tranche/checkpoint.h>

// Compares two state.json: what decides how training goes on. Adds what differs to
// diff->states, and takes diff->identical back. TR_IO names file and key.
tr_status tr__diff_states(const char *path_a, const char *path_b, tr_diff *diff,
                          tr_error *err);

#endif
