// Models from folders: Hugging Face's, and our checkpoints, which are such.
#ifndef TR_MODELS_FOLDER_H
#define TR_MODELS_FOLDER_H

#include <tranche/extend/graph.h>

// The model that a config.json describes, or that of a folder. TR_IO, TR_USAGE name
// file and key. A folder may hold an adapter (files/safetensors/adapter.h): then the
// model is its base's, with the adapter beside its linear layers. base: where that is;
// NULL: where the folder says.
tr_status tr__model_from_file(const char *path, tr_model **out, tr_error *err);
tr_status tr__model_from_folder(const char *folder, const char *base, tr_model **out,
                                tr_error *err);

// Are the rows of the tensor of this name tokens?
bool tr__is_token_tensor(const tr_model *model, const char *name);

#endif
