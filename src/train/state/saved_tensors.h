// The tensors of a checkpoint, as pieces that each rank writes.
#ifndef TR_TRAIN_STATE_SAVED_TENSORS_H
#define TR_TRAIN_STATE_SAVED_TENSORS_H

#include "train/engine.h"
#include "train/state/read_tensors.h"

typedef struct tr_saved_tensors {
    tr_checkpoint_tensor *tensors; // [count]
    char (*names)[TR_TENSOR_NAME_MAX];
    size_t count;
    float *zeros; // that pad the rows of tokens
} tr_saved_tensors;

// The optimizer's name of weights in f32 that are written in fewer bits.
#define TR_SAVED_MASTER "master"

// The parameters, as checkpoint.dtype has them in files, and the model's states.
// False: no memory. Freed in either case.
bool tr__saved_model(tr_engine *engine, tr_saved_tensors *list);
// All parameters in each of the optimizer's states; where checkpoint.dtype is not f32,
// their own values, too, as "<name>.master". The same of memory.
bool tr__saved_optimizer(tr_engine *engine, tr_saved_tensors *list);
void tr__saved_free(tr_saved_tensors *list);
// Does checkpoint.shard_bytes make few enough files? TR_USAGE.
tr_status tr__saved_check_shards(tr_engine *engine, tr_error *err);
// What is on NVMe, for those who write it (tr_tensor_source.read; user: the engine).
tr_status tr__saved_read(void *user, int64_t key, int64_t at, const float **data,
                         int64_t *count, tr_error *err);

#endif
