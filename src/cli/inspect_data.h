// The part of `tranche inspect` that is about data.
#ifndef TR_CLI_INSPECT_DATA_H
#define TR_CLI_INSPECT_DATA_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stdint.h>

// Prints what `path` is as a dataset to standard output. TR_DATA.
tr_status cli_inspect_data(const char *path, int64_t positions, bool json,
                           tr_error *err);

#endif
