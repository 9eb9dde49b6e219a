// What evaluate and predict share.
#ifndef TR_CLI_EVALUATE_H
#define TR_CLI_EVALUATE_H

#include "cli/cli.h"
#include "cli/files.h"

#include <tranche/sample.h>

typedef struct cli_ask {
    const char *path, *format, *base;
    cli_list data, set;
    bool json;
} cli_ask;

// What the library needs; messages go to standard error.
tr_evaluator_options cli_evaluator_options(const cli_ask *asked);

// ---- npy.c
// An array of f32 of shape [rank], 2 dimensions or more, written a piece at a time.
tr_status cli_npy_begin(const cli_output *out, const int64_t *shape, int rank,
                        tr_error *err);
tr_status cli_npy_write(const cli_output *out, const float *values, int64_t count,
                        tr_error *err);
// The same from element `first` on.
tr_status cli_npy_write_at(const cli_output *out, int64_t first, const float *values,
                           int64_t count, tr_error *err);

#endif
