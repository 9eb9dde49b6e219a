// The engine's tensors by the names that they have in files.
#ifndef TR_TRAIN_TENSORS_H
#define TR_TRAIN_TENSORS_H

#include "ckpt/tensor_set.h"
#include "train/engine.h"

enum { TR_TENSOR_NAME_MAX = 256 };

// dst: [TR_TENSOR_NAME_MAX]: the parameter's name, or "<name>.exp_avg" of a state >= 0.
void tr__engine_tensor_name(const tr_engine *engine, int param, int state, char *dst);
// Fills all parameters (state -1), or one optimizer state, from a file. TR_IO names
// what is missing or of another shape.
tr_status tr__engine_read_tensors(tr_engine *engine, const tr_tensor_set *set,
                                  const char *path, int state, tr_error *err);
// Of names and shapes of all parameters: tells whether a checkpoint is of this model.
uint64_t tr__engine_model_hash(const tr_engine *engine);

#endif
