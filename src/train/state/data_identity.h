// Is the data that of a checkpoint?
#ifndef TR_TRAIN_STATE_DATA_IDENTITY_H
#define TR_TRAIN_STATE_DATA_IDENTITY_H

#include "base/log.h"
#include "files/checkpoint/state.h"

#include <tranche/data.h>

enum { TR_DATA_NUMBERS = 3 }; // of a checkpoint

// Keeps what data the weights were trained on.
void tr__data_identity_put(const tr_dataset *data, tr_state *state);

// TR_IO where `folder` is a checkpoint of other data; where only the split between
// training and validation differs, the message says so. One that knows its data by
// names and sizes alone, as earlier versions wrote them, is taken, and that is said.
tr_status tr__data_identity_check(const tr_dataset *data, const tr_state *state,
                                  const char *folder, const tr_log *log, tr_error *err);

#endif
