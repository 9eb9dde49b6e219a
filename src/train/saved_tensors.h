// The tensors of a checkpoint, as pieces that each rank writes.
#ifndef TR_TRAIN_SAVED_TENSORS_H
#define TR_TRAIN_SAVED_TENSORS_H

#include "train/engine.h"
#include "train/folder.h"

typedef struct tr_saved_tensors {
    tr_checkpoint_tensor *tensors; // [count]
    char (*names)[TR_TENSOR_NAME_MAX];
    size_t count;
    float *zeros; // that pad the rows of tokens
} tr_saved_tensors;

// All parameters in each of the optimizer's states [first, end); with the parameters
// themselves (-1), the model's states. False: no memory. Freed in either case.
bool tr__saved_list(tr_engine *engine, int first, int end, tr_saved_tensors *list);
void tr__saved_free(tr_saved_tensors *list);
// What is on NVMe, for those who write it (tr_tensor_source.read; user: the engine).
tr_status tr__saved_read(void *user, int64_t key, int64_t at, const float **data,
                         int64_t *count, tr_error *err);

#endif
