// Adapters as PEFT describes them: the run's key "adapter", and adapter_config.json.
#ifndef TR_MODELS_ADAPTER_H
#define TR_MODELS_ADAPTER_H

#include "graph/adapter.h"

#include <tranche/model.h>

#include <jansson.h>

typedef struct tr_adapter_config tr_adapter_config;

// From PEFT's keys. `origin` names them in messages ("adapter", or a file). type: the
// base's model_type, which says what layers have adapters where no key does. The caller
// destroys *out. TR_USAGE names a key that is wrong, or that asks for what is not
// there. TR_MEMORY.
tr_status tr__adapter_from_json(const json_t *object, const char *origin,
                                const char *type, tr_adapter_config **out,
                                tr_error *err);
// From the adapter_config.json of a folder. TR_IO, TR_USAGE, TR_MEMORY.
tr_status tr__adapter_from_folder(const char *folder, const char *type,
                                  tr_adapter_config **out, tr_error *err);
void tr__adapter_destroy(tr_adapter_config *adapter); // NULL-safe

// The patterns of what is trained: the adapter's tensors, and modules_to_save. NULL at
// the end. Owned by the adapter.
const char *const *tr__adapter_trained(const tr_adapter_config *adapter);
// Target number `index`, and whether it names this module; NULL after the last. A
// regular expression, or "all-linear", is one target.
const char *tr__adapter_target(const tr_adapter_config *adapter, size_t index);
bool tr__adapter_names(const tr_adapter_config *adapter, size_t index,
                       const char *module);

// By which the adapter's products are multiplied.
float tr__adapter_scale(const tr_adapter_config *adapter);
int64_t tr__adapter_rank(const tr_adapter_config *adapter);

// Are the weights of linear layers [in, out] in files of models of this type?
bool tr__weights_are_in_out(const char *type);

// The text of its adapter_config.json, beside a base of this model_type. base: its
// folder or name. NULL: no memory. Freed with tr__free.
char *tr__adapter_text(const tr_adapter_config *adapter, const char *type,
                       bool classifies, const char *base);

// Puts the adapter beside the linear layers of one of the library's models, which owns
// it from then on.
void tr__model_adapt(tr_model *model, tr_adapter_config *adapter);
// That of the model; NULL: it has none.
const tr_adapter_config *tr__model_adapter(const tr_model *model);

#endif
