// The architectures that come with Tranche.
#ifndef TR_MODELS_MODELS_H
#define TR_MODELS_MODELS_H

#include "models/gpt2.h"
#include "models/mlp.h"
#include "models/resnet.h"

#include <jansson.h>

// From an architecture's own numbers. The caller destroys the model.
tr_status tr__model_gpt2(const tr_gpt2_config *config, tr_model **out, tr_error *err);
tr_status tr__model_mlp(const tr_mlp_config *config, tr_model **out, tr_error *err);
tr_status tr__model_resnet(const tr_resnet_config *config, tr_model **out,
                           tr_error *err);

// Adds keys of `object` to the config.json of one of the models above: those of `names`
// [count] that are there and that it does not write itself.
tr_status tr__model_keep(tr_model *model, const json_t *object,
                         const char *const *names, size_t count, tr_error *err);

// Has the model use its vocabulary in `slices`: each is gathered, and its gradient
// reduced, on its own. Changes neither names nor shapes in files. TR_USAGE: more slices
// than there are classes, or an architecture that cannot be cut so (any but gpt2).
tr_status tr__model_slice(tr_model *model, int slices, tr_error *err);

// Gives the model a vocabulary of so many tokens. TR_USAGE: it has none (only gpt2
// has).
tr_status tr__model_resize(tr_model *model, int64_t vocabulary, tr_error *err);

// From the keys of a Hugging Face config.json (or those of an "mlp"). `origin` names
// them in messages ("model", or a file). With `strict`, a key that is unknown is an
// error that names the nearest one; a Hugging Face folder has many that do not matter.
// Keys that others read in a checkpoint's config.json (which token begins and ends a
// text) are kept.
tr_status tr__model_from_json(const json_t *keys, const char *origin, bool strict,
                              tr_model **out, tr_error *err);

// The published shapes behind a name ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")
// as config.json keys; NULL when there is none. The caller decrefs.
json_t *tr__model_preset(const char *name);
// All such names, for messages. Returns how many.
size_t tr__model_preset_names(const char *const **names);

#endif
