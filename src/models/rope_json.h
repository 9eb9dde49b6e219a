// Rotary embeddings' keys in config.json, in the forms of transformers 4 (rope_theta
// and rope_scaling) and 5 (rope_parameters).
#ifndef TR_MODELS_ROPE_JSON_H
#define TR_MODELS_ROPE_JSON_H

#include "models/fields.h"

#include <tranche/extend/rope.h>

// `positions`: max_position_embeddings, which is the original context where no key
// names another. A scaling that is not built is refused by name.
tr_status tr__rope_read(const tr_model_keys *keys, int64_t positions,
                        tr_rope_options *out, tr_error *err);
// Adds both forms to a config.json; false: no memory.
bool tr__rope_write(const tr_rope_options *options, json_t *to);

#endif
