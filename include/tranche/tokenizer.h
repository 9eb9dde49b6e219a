// Tokenizers: text to token ids and back, as Hugging Face's `tokenizers` does it.
//
//     tr_tokenizer *tokenizer = NULL;
//     tr_token_ids ids = {0};
//     tr_tokenizer_load("gpt2", &tokenizer, &err);
//     tr_tokenizer_encode(tokenizer, text, bytes, NULL, 0, &ids, &err);
//     ...
//     tr_token_ids_release(&ids);
//     tr_tokenizer_destroy(tokenizer);
#ifndef TRANCHE_TOKENIZER_H
#define TRANCHE_TOKENIZER_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A tokenizer never changes once it is loaded, so threads can share it.
typedef struct tr_tokenizer tr_tokenizer;

// Ids that calls append to. Zero-initialize it; the caller releases it.
typedef struct tr_token_ids {
    int32_t *id; // [count]
    size_t count, capacity;
} tr_token_ids;

TR_API void tr_token_ids_release(tr_token_ids *ids);
// Appends id [count]. TR_MEMORY.
TR_API tr_status tr_token_ids_add(tr_token_ids *ids, const int32_t *id, size_t count,
                                  tr_error *err);

typedef struct tr_encode_options {
    bool add_special; // add the tokens that begin and end a text ("[CLS]", "<s>", ...)
    bool plain_special; // special tokens written in the text are text like any other
} tr_encode_options;

// Reads a tokenizer.json; path: the file, a folder that has it, or the name of a model
// on Hugging Face's hub ("ORG/NAME") that its local cache has. TR_IO: it cannot be
// read. TR_DATA: it is damaged, or has a part that is not supported; the message names
// the place in the file. The file's truncation and padding are passed over.
TR_API tr_status tr_tokenizer_load(const char *path, tr_tokenizer **out, tr_error *err);
// Accepts NULL.
TR_API void tr_tokenizer_destroy(tr_tokenizer *tokenizer);

// One more than the greatest id.
TR_API int64_t tr_tokenizer_vocabulary(const tr_tokenizer *tokenizer);
// The id of a token as it is written in the file, -1: there is none.
TR_API int32_t tr_tokenizer_find(const tr_tokenizer *tokenizer, const char *token);
// A token as it is written in the file (not terminated by a zero), and its bytes; NULL:
// no token has the id. It lives as long as the tokenizer.
TR_API const char *tr_tokenizer_token(const tr_tokenizer *tokenizer, int32_t id,
                                      size_t *bytes);

// Appends the ids of a text. options: NULL for none. threads: 0 for all cores; a text
// is shared among them where it can be cut without changing its ids. What is not UTF-8
// counts as U+FFFD. TR_DATA: a regular expression of the file takes too long on it.
TR_API tr_status tr_tokenizer_encode(const tr_tokenizer *tokenizer, const char *text,
                                     size_t bytes, const tr_encode_options *options,
                                     int threads, tr_token_ids *ids, tr_error *err);

// How far the files are encoded: bytes of their texts.
typedef struct tr_encoded {
    int64_t done, total;
} tr_encoded;

// Begin with TR_ENCODE_FILES_INIT, then set members.
typedef struct tr_encode_files {
    size_t size;              // of this struct
    const char *const *paths; // [path_count] files, folders or globs, as data.train
    size_t path_count;
    tr_encode_options options;
    int threads; // 0: all cores
    // Gets the next ids [count], on the calling thread. An error ends the call with it.
    tr_status (*take)(void *user, const int32_t *id, size_t count, tr_encoded so_far,
                      tr_error *err);
    void *user;
} tr_encode_files;

#define TR_ENCODE_FILES_INIT                                                           \
    { sizeof(tr_encode_files), NULL, 0, {false, false}, 0, NULL, NULL }

// Encodes the files, joined, as one text. Neither they nor the ids are ever in memory
// whole. TR_USAGE: a struct of an unknown size. TR_DATA: a file cannot be read, or
// there are only empty ones. TR_MEMORY, and the errors of tr_tokenizer_encode and
// `take`.
TR_API tr_status tr_tokenizer_encode_files(const tr_tokenizer *tokenizer,
                                           const tr_encode_files *files, tr_error *err);

// The text of ids, which the caller releases with tr_tokenizer_text_release; a zero
// follows it. skip_special: special tokens are left out. Ids that no token has count as
// nothing.
TR_API tr_status tr_tokenizer_decode(const tr_tokenizer *tokenizer, const int32_t *id,
                                     size_t count, bool skip_special, char **text,
                                     size_t *bytes, tr_error *err);
TR_API void tr_tokenizer_text_release(char *text);

// What one thread needs to encode one text after the other, among it a memory of words
// that it has met. The tokenizer must outlive it.
typedef struct tr_encoder tr_encoder;

TR_API tr_status tr_encoder_create(const tr_tokenizer *tokenizer, tr_encoder **out,
                                   tr_error *err);
// Accepts NULL.
TR_API void tr_encoder_destroy(tr_encoder *encoder);
// As tr_tokenizer_encode, on this thread.
TR_API tr_status tr_encoder_encode(tr_encoder *encoder, const char *text, size_t bytes,
                                   const tr_encode_options *options, tr_token_ids *ids,
                                   tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
