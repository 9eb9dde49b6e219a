// An architecture: one file, and one row of the table in models.c.
#ifndef TR_MODELS_ARCHITECTURE_H
#define TR_MODELS_ARCHITECTURE_H

#include "models/fields.h"

#include <tranche/extend/graph.h>

// A published shape by its name, as keys of config.json.
typedef struct tr_model_preset {
    const char *name, *keys;
} tr_model_preset;

// A probability of dropout among the keys, and what it is called when it is shown.
typedef struct tr_dropout_key {
    const char *key, *name;
} tr_dropout_key;

// A model whose inputs are token ids. In its config: how many ids there are, how many
// positions a sample may have, and in how many slices the embedding is used.
typedef struct tr_token_model {
    int64_t *(*vocabulary)(void *config);
    int64_t (*positions)(const void *config);
    int *(*slices)(void *config);
    // Tensors whose rows are tokens, as files call them, NULL at the end.
    const char *const *tensors;
} tr_token_model;

typedef struct tr_architecture {
    const char *type; // "model_type"
    tr_status (*from_json)(const tr_model_keys *keys, bool strict, tr_model **out,
                           tr_error *err);
    const tr_token_model *tokens;   // NULL: inputs are numbers
    const tr_model_preset *presets; // ended by a name that is NULL; NULL: none
    const tr_dropout_key *dropout;  // ended by a key that is NULL; NULL: none
    const char *hugging_face;       // transformers' class; NULL: it has none
} tr_architecture;

extern const tr_architecture tr__architecture_gpt2, tr__architecture_llama,
    tr__architecture_mistral, tr__architecture_qwen2, tr__architecture_qwen3,
    tr__architecture_mlp, tr__architecture_resnet;

#endif
