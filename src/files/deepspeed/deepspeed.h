// A folder that DeepSpeed saved (ZeRO 0 to 3), open for reading: weights in f32 and the
// optimizer's states, whole again.
#ifndef TR_FILES_DEEPSPEED_DEEPSPEED_H
#define TR_FILES_DEEPSPEED_DEEPSPEED_H

#include "files/safetensors/tensor_set.h"

#include <stdbool.h>

enum { TR_DEEPSPEED_STATES = 8, TR_DEEPSPEED_STATE_NAME = 64 };

typedef struct tr_deepspeed {
    // "<name>" of each parameter and buffer, and "<name>.<state>" of what was trained.
    tr_tensor_set *tensors;
    // {name: the name by which it was trained}: those differ where two modules share
    // a parameter.
    json_t *trained;
    int states;
    char state[TR_DEEPSPEED_STATES][TR_DEEPSPEED_STATE_NAME];
    int stage;                // of ZeRO
    int64_t updates, skipped; // steps that were applied, and that were not
    int64_t samples;          // of the steps that were applied
} tr_deepspeed;

// Whether a run trains the parameter of this name. Without ZeRO, DeepSpeed's folders do
// not say which they trained.
typedef bool (*tr_deepspeed_is_trained)(const void *user, const char *name);

// The folder of a step: `path` itself, or the one in it that `latest` names. dst:
// [PATH_MAX], "" where DeepSpeed saved nothing there. TR_IO: it has steps, and does not
// say which is the latest.
tr_status tr__deepspeed_locate(const char *path, char *dst, tr_error *err);

// Reads and checks all but the values; verify: also that these are what was written.
// TR_IO names the file, and what is wrong with it or not known. TR_MEMORY. Closed by
// tr__deepspeed_close in either case.
tr_status tr__deepspeed_open(const char *folder, bool verify,
                             tr_deepspeed_is_trained is_trained, const void *user,
                             tr_deepspeed *out, tr_error *err);
void tr__deepspeed_close(tr_deepspeed *saved);

#endif
