// What the folder of a sentence-transformers model says beside config.json:
// modules.json lists the parts behind the transformer, sentence_bert_config.json the
// length of texts.
#ifndef TR_MODELS_SENTENCE_H
#define TR_MODELS_SENTENCE_H

#include "models/task.h"

#include <tranche/status.h>

typedef struct tr_sentence {
    bool there; // the folder has a modules.json
    tr_embedding_way way;
    int64_t length; // tokens of a text; 0: not said
} tr_sentence;

// Without modules.json: the mean of a text's tokens, of length 1. TR_USAGE names the
// file and what of it is not supported. TR_IO, TR_MEMORY.
tr_status tr__sentence_read(const char *folder, tr_sentence *out, tr_error *err);

// The same files of a model that makes embeddings, as sentence-transformers reads them.
enum { TR_SENTENCE_FILES = 3 };
typedef struct tr_sentence_file {
    const char *name; // in the folder, or "FOLDER/NAME"
    char *text;       // freed by tr__sentence_release
} tr_sentence_file;
// tokens: of a text at most; width: of an embedding. TR_MEMORY.
tr_status tr__sentence_write(const tr_embedding_way *way, int64_t tokens, int64_t width,
                             tr_sentence_file out[TR_SENTENCE_FILES], tr_error *err);
void tr__sentence_release(tr_sentence_file files[TR_SENTENCE_FILES]);

#endif
