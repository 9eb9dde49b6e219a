// What `tranche tokenize` was asked for, and its two directions.
#ifndef TR_CLI_TOKENIZE_H
#define TR_CLI_TOKENIZE_H

#include <tranche/data.h>

enum { CLI_TOKENIZE_FILES_MAX = 4096 };

typedef struct cli_tokenize {
    const char *tokenizer, *out, *dtype, *decode; // NULL: not given
    const char *files[CLI_TOKENIZE_FILES_MAX];
    size_t file_count;
    bool special, plain_special;
    int64_t threads; // 0: all cores
} cli_tokenize;

// The joined files' ids to a file, or only their number.
tr_status cli_tokenize_encode(const tr_tokenizer *tokenizer, const cli_tokenize *asked,
                              tr_error *err);
// A file of ids to standard output.
tr_status cli_tokenize_decode(const tr_tokenizer *tokenizer, const cli_tokenize *asked,
                              tr_error *err);

#endif
