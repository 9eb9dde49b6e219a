// Is the model, and what of it is trained, that of a checkpoint?
#ifndef TR_TRAIN_STATE_MODEL_IDENTITY_H
#define TR_TRAIN_STATE_MODEL_IDENTITY_H

#include "train/engine.h"

// Keeps names and shapes of the tensors, and which are frozen.
void tr__model_identity_put(const tr_engine *engine, tr_state *state);

// TR_IO: the checkpoint is of another model, or of other frozen parameters.
tr_status tr__model_identity_check(const tr_engine *engine, const tr_checkpoint *from,
                                   tr_error *err);

#endif
