// A growing array of token ids.
#ifndef TR_TEXT_TOKENIZER_IDS_H
#define TR_TEXT_TOKENIZER_IDS_H

#include "base/memory.h"

#include <tranche/data.h>

#include <string.h>

static inline bool tr__ids_reserve(tr_token_ids *ids, size_t more) {
    if (ids->capacity - ids->count >= more) {
        return true;
    }
    return more <= SIZE_MAX - ids->count &&
           tr__grow((void **)&ids->id, &ids->capacity, ids->count + more,
                    sizeof *ids->id);
}

static inline bool tr__ids_add(tr_token_ids *ids, const int32_t *id, size_t count) {
    if (!tr__ids_reserve(ids, count)) {
        return false;
    }
    if (count > 0) {
        memcpy(ids->id + ids->count, id, count * sizeof *id);
    }
    ids->count += count;
    return true;
}

#endif
