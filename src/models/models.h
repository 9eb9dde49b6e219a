// The architectures that come with Tranche.
#ifndef TR_MODELS_MODELS_H
#define TR_MODELS_MODELS_H

#include "models/architecture.h"
#include "models/bert.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/mlp.h"
#include "models/resnet.h"

#include <jansson.h>

// Adds keys of `object` to the config.json of one of the models above: those of `names`
// [count] that are there and that it does not write itself. *out is the model; on an
// error it is destroyed.
tr_status tr__model_keep(tr_model *model, const json_t *object,
                         const char *const *names, size_t count, tr_model **out,
                         tr_error *err);

// The text of a checkpoint's config.json, whose weights are of this type, of one of the
// models above. One that transformers knows says the type by the keys of its versions 4
// and 5, and has the other keys of the file that it comes from. NULL: no memory. Freed
// with tr__free.
char *tr__model_config(const tr_model *model, tr_dtype weights);

// Has the model use its vocabulary in `slices`: each is gathered, and its gradient
// reduced, on its own. Changes neither names nor shapes in files. TR_USAGE: more slices
// than there are classes, or an architecture without a vocabulary.
tr_status tr__model_slice(tr_model *model, int slices, tr_error *err);

// Gives the model a vocabulary of so many tokens, and its tensors of it `rows` rows in
// files, at least as many. TR_USAGE: it has none (its inputs are no tokens).
tr_status tr__model_resize(tr_model *model, int64_t vocabulary, int64_t rows,
                           tr_error *err);

// Of a model that reads tokens: the positions that it has, and how many tokens a sample
// takes of them, which is all at first (of llama and its kin, 2,048 at most).
int64_t tr__model_positions(const tr_model *model);
// packed: samples are of several documents (tr_batch_packed). Where they are rows of
// texts (tr_batch_texts): packed, one for every 8 tokens at most, else one.
void tr__model_set_length(tr_model *model, int64_t tokens, bool packed);

// Is it an encoder? How many types tokens may have; 0: the model takes none.
bool tr__model_is_encoder(const tr_model *model);
int64_t tr__model_types(const tr_model *model);
// Are its samples rows of whole texts, as those of all tasks but causal_lm?
bool tr__model_reads_texts(const tr_model *model);
bool tr__model_is_masked(const tr_model *model); // is its task masked_lm?
// How it makes embeddings of texts; NULL: it makes none.
const struct tr_embedding_way *tr__model_embedding(const tr_model *model);
// The texts of a sample where embeddings are trained; else 0. Sets how many samples an
// optimizer step has at most, which its loss is over.
int64_t tr__model_group(const tr_model *model);
void tr__model_set_groups(tr_model *model, int64_t groups);
// The task that the class in its file is for; without one, that of its type.
tr_model_task tr__model_task(const tr_model *model);
// The labels that its file names (models/labels.h). The caller releases them. TR_USAGE.
tr_status tr__model_labels(const tr_model *model, tr_task_labels *out, tr_error *err);
// Has a model do a task. Labels are copied; they have names. TR_USAGE: it cannot.
tr_status tr__model_set_task(tr_model *model, const tr_task_settings *settings,
                             tr_error *err);
// What the class is for that a config.json names.
tr_model_task tr__class_task(const json_t *keys, bool encoder);
// May files of a class for another task lack this tensor, which belongs to a head?
bool tr__model_may_lack(const tr_model *model, const char *name);

// From the keys of a Hugging Face config.json (or those of an "mlp"). `origin` names
// them in messages ("model", or a file). With `strict`, a key that is unknown is an
// error that names the nearest one; a Hugging Face folder has many that do not matter.
// Keys that others read in a checkpoint's config.json (which token begins and ends a
// text) are kept.
tr_status tr__model_from_json(const json_t *keys, const char *origin, bool strict,
                              tr_model **out, tr_error *err);

// Is the model's first input token ids?
bool tr__model_reads_tokens(const tr_model *model);
// Does a model of this type read token ids? Then its vocabulary can be cut into slices.
bool tr__model_type_reads_tokens(const char *type);
// The probabilities of dropout among its keys; NULL: it has none.
const tr_dropout_key *tr__model_dropout(const tr_model *model);

// The published shapes behind a name ("gpt2", "gpt2-medium") as config.json keys; NULL
// when there is none. The caller decrefs.
json_t *tr__model_preset(const char *name);
// All such names, for messages. Returns how many.
enum { TR_MODEL_PRESETS_MAX = 64 };
size_t tr__model_preset_names(const char *names[TR_MODEL_PRESETS_MAX]);

#endif
