// The tokens that end a text, as a model's folder has them.
#ifndef TR_INFER_END_TOKENS_H
#define TR_INFER_END_TOKENS_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stdint.h>

enum { TR_END_TOKENS_MAX = 64 };

typedef struct tr_end_tokens {
    int32_t id[TR_END_TOKENS_MAX];
    int count;
} tr_end_tokens;

// Reads eos_token_id, a number or a list of numbers, from the folder's
// generation_config.json or, where that is missing or does not have the key, from its
// config.json. No key, or null: no tokens. TR_IO, TR_USAGE name file and key.
tr_status tr__end_tokens_read(const char *folder, tr_end_tokens *out, tr_error *err);
bool tr__end_tokens_have(const tr_end_tokens *tokens, int32_t token);

#endif
