// What data are, as far as a run file has to say it.
#ifndef TR_CLI_INIT_DATA_H
#define TR_CLI_INIT_DATA_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cli_data_kind {
    CLI_DATA_TEXT,   // files of text, or of any bytes
    CLI_DATA_TOKENS, // ids of so many bits
    CLI_DATA_RECORDS,
    CLI_DATA_TABLE,
    CLI_DATA_ARRAYS
} cli_data_kind;

typedef struct cli_data {
    cli_data_kind kind;
    const char **paths; // [count] of the samples, borrowed
    size_t count;
    const char *labels; // arrays: of the labels, borrowed
    bool text;          // else bytes of any kind
    int64_t files, bytes;
    int64_t rows; // records, rows of a table or an array
    int64_t features, classes;
    int id_width;       // tokens: bytes of an id
    int64_t vocabulary; // tokens
    bool chats;         // records: of messages, else texts or prompts
} cli_data;

// Looks at all of them. TR_USAGE: they are of several kinds; TR_DATA: they cannot be
// trained on; TR_IO, TR_MEMORY.
tr_status cli_data_look(const char **paths, size_t count, cli_data *out, tr_error *err);

#endif
