// Files that the program reads and writes itself.
#ifndef TR_CLI_FILES_H
#define TR_CLI_FILES_H

#include <tranche/status.h>

#include <stdio.h>

// The whole of a regular file of at most `limit` bytes; freed with free.
tr_status cli_file_read(const char *path, size_t limit, char **data, size_t *bytes,
                        tr_error *err);

// A file that is written beside the one that it replaces, and gets its name when it is
// whole: a reader sees the old or the new.
typedef struct cli_output {
    FILE *to;
    const char *path; // borrowed
    char *beside;
} cli_output;

// TR_IO: what has the name is no regular file, or cannot be replaced.
tr_status cli_output_open(cli_output *out, const char *path, tr_error *err);
// TR_IO: a write to `to` has failed.
tr_status cli_output_fail(const cli_output *out, tr_error *err);
// Gives the file its name where `status` is TR_OK, and else removes it; nothing where
// it was not opened. Returns the first error.
tr_status cli_output_close(cli_output *out, tr_status status, tr_error *err);

#endif
