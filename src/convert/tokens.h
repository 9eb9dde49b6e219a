// Tokenizers of Hugging Face folders as the metadata of GGUF files, and back.
#ifndef TR_CONVERT_TOKENS_H
#define TR_CONVERT_TOKENS_H

#include "base/log.h"
#include "files/gguf/gguf.h"
#include "files/gguf/writer.h"

#include <tranche/data.h>

// Types of tokens in files.
enum {
    TR_GGUF_NORMAL = 1,
    TR_GGUF_UNKNOWN = 2,
    TR_GGUF_CONTROL = 3,
    TR_GGUF_USER_DEFINED = 4,
    TR_GGUF_UNUSED = 5,
    TR_GGUF_BYTE = 6
};

// A token of a list by id. Its text is borrowed.
typedef struct tr_listed_token {
    const char *text; // NULL: no token has the id
    size_t bytes;
    int type;
    float score;
} tr_listed_token;

// The tokenizer of a folder with a model of `vocabulary` tokens, to a file's metadata.
// Without a tokenizer.json a vocabulary of 256 is that of bytes, and another one has no
// texts. TR_DATA: the tokenizer is damaged, or files cannot say what it does; TR_IO,
// TR_MEMORY.
tr_status tr__tokens_describe(tr_gguf_writer *writer, const char *folder,
                              int64_t vocabulary, const tr_log *log, tr_error *err);
// The part of it that says which tokens frame a text, which ones have a role, and how
// conversations become texts.
tr_status tr__special_describe(tr_gguf_writer *writer, const char *folder,
                               const tr_tokenizer *tokenizer, const tr_log *log,
                               tr_error *err);

// tokenizer.json, tokenizer_config.json and chat_template.jinja into a folder, as far
// as the file has a tokenizer. vocabulary: of the model. TR_IO: it is damaged or not
// supported; TR_MEMORY.
tr_status tr__tokens_restore(const tr_gguf *gguf, const char *folder,
                             int64_t vocabulary, tr_error *err);

// Is it "<0x41>", which stands for a byte?
bool tr__is_byte_token(const char *text, size_t bytes);

#endif
