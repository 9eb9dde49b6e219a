// Models with their weights in the local cache of Hugging Face (base/hub.h).
#ifndef TR_FILES_CHECKPOINT_HUB_MODEL_H
#define TR_FILES_CHECKPOINT_HUB_MODEL_H

#include <tranche/status.h>

// As tr__hub_find. TR_USAGE, too: config.json or the weights are missing.
tr_status tr__hub_find_model(const char *name, char *folder, tr_error *err);

#endif
