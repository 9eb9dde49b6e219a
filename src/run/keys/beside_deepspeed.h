// Keys of run files beside those of DeepSpeed.
#ifndef TR_RUN_KEYS_BESIDE_DEEPSPEED_H
#define TR_RUN_KEYS_BESIDE_DEEPSPEED_H

#include "config/keys.h"

// What DeepSpeed's key of this name means beside ours: "same", with a remark or
// without, or "differs: ..." and how. NULL: DeepSpeed has no such key, or the key has
// no effect here.
const char *tr__key_beside_deepspeed(const tr_key *key);
// The path of row number `index`; NULL after the last.
const char *tr__key_beside_deepspeed_path(size_t index);

#endif
