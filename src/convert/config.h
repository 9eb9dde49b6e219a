// The config.json of a model in a GGUF file.
#ifndef TR_CONVERT_CONFIG_H
#define TR_CONVERT_CONFIG_H

#include "files/gguf/gguf.h"

#include <tranche/model.h>

// The model that the file's metadata describe, as its config.json would. TR_IO: an
// architecture, a key or a value that is not supported; TR_MEMORY.
tr_status tr__config_model(const tr_gguf *gguf, tr_model **out, tr_error *err);

#endif
