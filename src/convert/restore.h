// What makes a tokenizer.json of a GGUF file's metadata.
#ifndef TR_CONVERT_RESTORE_H
#define TR_CONVERT_RESTORE_H

#include "convert/pre.h"
#include "convert/tokens.h"

// A role that a token may have.
typedef enum tr_role {
    TR_ROLE_BOS,
    TR_ROLE_EOS,
    TR_ROLE_UNK,
    TR_ROLE_PAD,
    TR_ROLES
} tr_role;

typedef struct tr_restorer {
    const tr_gguf *gguf;
    const char *path;
    tr_listed_token *token; // [count]
    int64_t count;
    bool bytes;             // byte-level; else SentencePiece's
    const tr_pre *pre;      // byte-level
    int32_t role[TR_ROLES]; // -1: no token has it
    bool add_bos, add_eos, add_prefix;
    json_t *vocabulary; // {"token": id}
} tr_restorer;

// The tokens, checked, and what is said of them. TR_IO, TR_MEMORY.
tr_status tr__restore_read(tr_restorer *r, int64_t vocabulary, tr_error *err);
// The list of merges; NULL: no memory, or err says what is wrong.
json_t *tr__restore_merges(const tr_restorer *r, tr_error *err);
// The whole tokenizer.json; the same.
json_t *tr__restore_json(const tr_restorer *r, tr_error *err);

// The "▁" that stands for a blank.
#define TR_BLANK_MARK "\xe2\x96\x81"

#endif
