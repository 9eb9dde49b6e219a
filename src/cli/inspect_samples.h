// The part of `tranche inspect` that shows samples as they are trained.
#ifndef TR_CLI_INSPECT_SAMPLES_H
#define TR_CLI_INSPECT_SAMPLES_H

#include "cli/cli.h"

// Prints the first `count` samples of a run file's training data, in the order of the
// first epoch: text, of which what is learnt stands in brackets; as JSON the rows of
// ids and labels. set: "KEY.PATH=VALUE". TR_USAGE, TR_DATA, TR_IO.
tr_status cli_inspect_samples(const char *file, const cli_list *set, int64_t count,
                              bool json, tr_error *err);

#endif
