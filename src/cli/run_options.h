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
    // What the run says; NULL: cli_say.
    void (*say)(void *user, tr_message_level level, const char *line);
} cli_run;

// Says a message of the library's on standard error; the second: if it is a warning.
void cli_say(void *user, tr_message_level level, const char *line);
void cli_say_warning(void *user, tr_message_level level, const char *line);
// A run of the file (NULL: GPT-2 on tokens) and of what was parsed, not yet resolved;
// its messages are said, and a GPU may be chosen. The caller destroys *out, also after
// an error.
tr_status cli_make_run(const cli_run *asked, const char *file, tr_run **out,
                       tr_error *err);
// Gives it a machine (NULL: this one) and a communicator (NULL: this process alone).
tr_status cli_give(tr_run *run, const cli_run *asked, const tr_machine *machine,
                   struct tr_comm *comm, bool (*stop)(void *user), tr_error *err);

#endif
