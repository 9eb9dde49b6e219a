// What train --json writes to standard output: the lines of metrics.jsonl as they are,
// and an object for each event beside them.
#ifndef TR_CLI_TRAIN_EVENTS_H
#define TR_CLI_TRAIN_EVENTS_H

#include <tranche/engine.h>

#include <jansson.h>

// An event of now, with its kind and time; with a text; the end, error: NULL: none.
// Numbers of an event's line have so many digits: of milliseconds since 1970. NULL: no
// memory.
enum { CLI_EVENT_DIGITS = 14 };
json_t *cli_event_of(const char *kind);
json_t *cli_event_of_text(const char *kind, const char *text);
json_t *cli_event_of_end(int exit_status, const char *error);

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
