// What evaluate and predict share.
#ifndef TR_CLI_EVALUATE_H
#define TR_CLI_EVALUATE_H

#include "cli/cli.h"

#include <tranche/evaluate.h>

#include <stdio.h>

typedef struct cli_ask {
    const char *path, *format;
    cli_list data, set;
    bool json;
} cli_ask;

// What the library needs; messages go to standard error.
tr_evaluator_options cli_evaluator_options(const cli_ask *asked);

// ---- npy.c
// An array of f32 written a piece at a time, under another name until it is whole.
typedef struct cli_npy {
    FILE *file;
    const char *path;
    char *beside;
} cli_npy;

tr_status cli_npy_open(const char *path, const int64_t shape[3], cli_npy *npy,
                       tr_error *err);
tr_status cli_npy_write(cli_npy *npy, const float *values, int64_t count,
                        tr_error *err);
// Gives the file its name where `status` is TR_OK, and else removes it. Returns the
// first error.
tr_status cli_npy_close(cli_npy *npy, tr_status status, tr_error *err);

#endif
