// How byte-level tokenizers cut texts into words, which GGUF files say by a name alone
// (tokenizer.ggml.pre).
#ifndef TR_CONVERT_PRE_H
#define TR_CONVERT_PRE_H

#include <jansson.h>
#include <stdbool.h>

typedef struct tr_pre {
    const char *const *names; // NULL at the end; the first is written, all are read
    const char *expression;   // NULL: that of the pre-tokenizer ByteLevel (GPT-2's)
    bool digits;              // each digit is a word
    bool ignore_merges;       // a word that is a token is that token
    bool nfc;                 // tokenizers of this name normalize so
} tr_pre;

// NULL: the name is not known.
const tr_pre *tr__pre_named(const char *name);
// That of a tokenizer.json with this pre-tokenizer and ignore_merges; NULL: none.
const tr_pre *tr__pre_of(const json_t *pre_tokenizer, bool ignore_merges);
// The pre-tokenizer, as it is written to a tokenizer.json; NULL: no memory.
json_t *tr__pre_json(const tr_pre *pre);

#endif
