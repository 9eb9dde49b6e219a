// Samples of several whole documents each: rows of tokens with the place of each token
// in its document, so that attention and positions begin anew with each.
#ifndef TR_DATA_TEXT_PACKED_H
#define TR_DATA_TEXT_PACKED_H

#include "data/sources/formats.h"

// Documents of different lengths, each read by its number.
typedef struct tr_documents {
    int64_t count;
    int32_t *length; // [count] tokens, 2 or more; of tr__alloc, and freed by tr__free
    // The first `count` tokens of a document. labels[i]: the target of position i, the
    // token after it or TR_NO_TARGET; that of the document's last token is ignored.
    // From several threads.
    tr_status (*read)(const void *user, int64_t document, int64_t count, int32_t *ids,
                      int32_t *labels, tr_error *err);
    void (*destroy)(void *user);
    void *user;
    int64_t bytes;      // of memory held
    int64_t vocabulary; // ids are below it
    int32_t padding;    // the id that fills rows up
    uint64_t hash;      // of all of them
    const char *about;  // what they are of; read during the opening alone
} tr_documents;

// Takes `documents` over, on failure, too. Rows have `length` tokens; a document that
// has more is cut to them, and how many are is told to whom the options name. `key`:
// what named them, for messages. TR_DATA: there are none.
tr_status tr__packed_open(const tr_data_options *options, tr_documents *documents,
                          const char *key, tr_dataset **out, tr_error *err);

#endif
