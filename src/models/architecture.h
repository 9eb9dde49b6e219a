// An architecture: one file, and one row of the table in models.c.
#ifndef TR_MODELS_ARCHITECTURE_H
#define TR_MODELS_ARCHITECTURE_H

#include "models/fields.h"
#include "models/task.h"

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
    int *(*slices)(void *config); // NULL: it is used as a whole
    // Tensors whose rows are tokens, as files call them, NULL at the end.
    const char *const *tensors;
} tr_token_model;

struct tr_units; // models/units.h

// A model that can do several tasks: samples of some are rows of whole texts
// (tr_batch_texts).
typedef struct tr_text_model {
    const char *classes; // what the names of transformers' classes begin with
    bool encoder;        // it sees both ways: it knows each task but causal_lm
    int64_t (*types)(const void *config); // of tokens; NULL: it takes none
    int64_t (*width)(const void *config); // of what its blocks give for a token
    tr_task_settings *(*task)(void *config);
    // The end of the name of the class that learns masked tokens and the next sentence;
    // NULL: there is none.
    const char *pretraining;
    // Makes the units those of the task in its config.
    void (*set_units)(struct tr_units *own);
    // What the names of tensors begin with that files of a class for another task lack,
    // NULL at the end.
    const char *const *heads;
} tr_text_model;

typedef struct tr_architecture {
    const char *type; // "model_type"
    tr_status (*from_json)(const tr_model_keys *keys, bool strict, tr_model **out,
                           tr_error *err);
    const tr_token_model *tokens;   // NULL: inputs are numbers
    const tr_text_model *texts;     // NULL: it knows no task but its own
    const tr_model_preset *presets; // ended by a name that is NULL; NULL: none
    const tr_dropout_key *dropout;  // ended by a key that is NULL; NULL: none
    const char *hugging_face;       // transformers' class; NULL: it has none
} tr_architecture;

extern const tr_architecture tr__architecture_gpt2, tr__architecture_llama,
    tr__architecture_mistral, tr__architecture_qwen2, tr__architecture_qwen3,
    tr__architecture_mlp, tr__architecture_resnet, tr__architecture_bert,
    tr__architecture_roberta;

#endif
