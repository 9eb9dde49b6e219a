// Tokens and their ids, in both directions.
#ifndef TR_TEXT_TOKENIZER_VOCABULARY_H
#define TR_TEXT_TOKENIZER_VOCABULARY_H

#include "text/tokenizer/node.h"
#include "text/unicode/buffer.h"

enum { TR_TOKEN_ID_MAX = (1 << 24) - 1, TR_TOKEN_BYTES_MAX = 1 << 16 };

typedef struct tr_token {
    size_t begin; // in `bytes`
    uint32_t count;
    bool present, special;
    int32_t renamed; // the place of an added token that decoding shows, plus 1
} tr_token;

typedef struct tr_vocabulary { // zero-initialized: empty
    tr_text bytes;
    tr_token *token; // [count], by id
    size_t count, capacity;
    int32_t *slot; // [mask + 1], ids in open addressing; -1: empty
    size_t mask, used;
} tr_vocabulary;

// The id is not taken and the token not there, else TR_DATA; `node` is for the message.
tr_status tr__vocabulary_add(tr_vocabulary *vocabulary, const tr_node *node,
                             const void *bytes, size_t count, int32_t id,
                             tr_error *err);
// {"token": id, ...}
tr_status tr__vocabulary_parse(tr_vocabulary *vocabulary, const tr_node *node,
                               tr_error *err);
void tr__vocabulary_release(tr_vocabulary *vocabulary);
// -1: not there.
int32_t tr__vocabulary_find(const tr_vocabulary *vocabulary, const void *bytes,
                            size_t count);

static inline const unsigned char *tr__vocabulary_bytes(const tr_vocabulary *vocabulary,
                                                        int32_t id) {
    return vocabulary->bytes.bytes + vocabulary->token[id].begin;
}

// The tokens that the model makes, and the added ones that it does not know.
typedef struct tr_tokens {
    tr_vocabulary *model, *extra;
} tr_tokens;

// The id of a token of either, -1: none has it.
static inline int32_t tr__tokens_find(const tr_tokens *tokens, const void *bytes,
                                      size_t count) {
    int32_t id = tr__vocabulary_find(tokens->model, bytes, count);
    return id >= 0 ? id : tr__vocabulary_find(tokens->extra, bytes, count);
}

static inline bool tr__vocabulary_has(const tr_vocabulary *vocabulary, int32_t id) {
    return (size_t)id < vocabulary->count && vocabulary->token[id].present;
}

// The token of an id, NULL: none has it.
static inline tr_token *tr__tokens_at(const tr_tokens *tokens, int32_t id) {
    if (id >= 0 && tr__vocabulary_has(tokens->model, id)) {
        return &tokens->model->token[id];
    }
    return id >= 0 && tr__vocabulary_has(tokens->extra, id) ? &tokens->extra->token[id]
                                                            : NULL;
}

// Its bytes; NULL: no token has the id.
static inline const unsigned char *tr__tokens_bytes(const tr_tokens *tokens, int32_t id,
                                                    size_t *count) {
    const tr_token *token = tr__tokens_at(tokens, id);
    if (!token) {
        return NULL;
    }
    *count = token->count;
    return tr__vocabulary_bytes(
        tr__vocabulary_has(tokens->model, id) ? tokens->model : tokens->extra, id);
}

#endif
