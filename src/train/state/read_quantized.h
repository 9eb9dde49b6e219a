// Weights that are kept in few bits, made of a tensor in files.
#ifndef TR_TRAIN_STATE_READ_QUANTIZED_H
#define TR_TRAIN_STATE_READ_QUANTIZED_H

#include "exec/executor.h"
#include "files/safetensors/tensor_set.h"

// Fills what this rank holds of the plan's parameter number `param`. Reads twice what
// the rank has of the tensor, a part at a time, and at once where its rows and columns
// are exchanged; with double quantization all of the tensor once, unless it is stored
// so. TR_IO, TR_MEMORY.
tr_status tr__read_quantized(const tr_tensor_set *set, const tr_stored_tensor *stored,
                             const tr_plan *plan, int param, tr_executor *executor,
                             tr_error *err);

#endif
