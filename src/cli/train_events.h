// What train --json writes to standard output: the lines of metrics.jsonl as they are,
// and an object for each event beside them.
#ifndef TR_CLI_TRAIN_EVENTS_H
#define TR_CLI_TRAIN_EVENTS_H

#include <tranche/engine.h>

// A message of the run's: {"kind": "note", "time": ..., "text": ...}, or "warning". The
// second: if it is a warning.
void cli_event_say(void *user, tr_message_level level, const char *line);
void cli_event_warning(void *user, tr_message_level level, const char *line);
// A line of metrics.jsonl.
void cli_event_metrics(void *user, const char *line);
// What is said between steps, as notes; steps themselves have their lines of metrics.
tr_screen cli_event_screen(bool quiet);
// The last line: {"kind": "end", "time": ..., "exit_status": ..., "error": ...}. error:
// NULL: none.
void cli_event_end(int exit_status, const char *error);

#endif
