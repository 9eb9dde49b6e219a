// The text of files to token ids: cut into documents, and these into blocks that the
// tokenizer takes, so that neither the files nor their ids are ever in memory whole.
#ifndef TR_DATA_TEXT_ENCODE_H
#define TR_DATA_TEXT_ENCODE_H

#include "data/sources/joined.h"
#include "text/tokenizer/stream.h"

#include <stdbool.h>

typedef struct tr_encode {
    tr_text_stream stream;
    const tr_joined *text; // entries are bytes
    // Is all of it one document? Else each file is one, or several: what `separator`
    // (NULL: nothing) separates. An empty document is none.
    bool joined;
    const char *separator;
    const int32_t *between; // a token between documents; NULL: there must be only one
    // Gets the ids in their order, and of how many bytes of the text all so far are.
    tr_status (*take)(void *user, tr_token_ids *ids, int64_t bytes, tr_error *err);
    void *user;
    int64_t documents; // result
} tr_encode;

// Errors: the tokenizer's and those of `take`; TR_USAGE: there are several documents,
// and no token is known that goes between them.
tr_status tr__encode_files(tr_encode *encode, tr_error *err);

// The bytes of an id in a file: 2 where the vocabulary fits, else 4.
int tr__ids_width(int64_t vocabulary);
// Turns ids into what a file has of them, in their place. Returns the bytes.
size_t tr__ids_pack(tr_token_ids *ids, int width);

#endif
