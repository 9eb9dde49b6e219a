// Ids that one process makes for all that want them, and keeps in the cache folder.
#ifndef TR_DATA_TEXT_TEXT_ONCE_H
#define TR_DATA_TEXT_TEXT_ONCE_H

#include "data/text/text_cache.h"

#include <tranche/data.h>

typedef struct tr_text_once {
    tr_text_cache *cache; // named
    const tr_data_options *options;
    const char *key; // "data.train", for messages
    // Makes the ids, and keeps them (tr__text_cache_keep).
    tr_status (*make)(void *user, tr_text_writer *writer, tr_error *err);
    void *user;
} tr_text_once;

// Finds the ids, makes them, or waits for a process that does. TR_INTERRUPTED.
tr_status tr__text_once(const tr_text_once *once, tr_error *err);
// TR_INTERRUPTED where the options' `stop` asks for it.
tr_status tr__text_go_on(const tr_data_options *options, tr_error *err);

#endif
