// The options that commands on a run file share.
#ifndef TR_CLI_RUN_OPTIONS_H
#define TR_CLI_RUN_OPTIONS_H

#include "cli/cli.h"

#include <tranche/run.h>

typedef struct cli_run {
    cli_list data, set;
    const char *model, *out, *resume;
    const char *trace;
    int64_t steps, ranks, trace_step, threads;
    int64_t seed; // -1: not given
    bool json;
} cli_run;

// Says a message of the library's on standard error.
void cli_say(void *user, tr_message_level level, const char *line);
// What the library needs, from what was parsed.
tr_run_options cli_run_options(const cli_run *run, const char *file);

#endif
