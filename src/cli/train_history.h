// history.jsonl of an out folder: an object a line for each process that has trained
// there. What began it, of which version, on which machine, what it said, and how it
// ended.
//
//     {"kind": "start", "time", "version", "command": [], "folder", "ranks", "step",
//      "machine": {"processor", "cores", "memory_bytes"}, "said": [], "warnings": []}
//     {"kind": "warning", "time", "text"}
//     {"kind": "end", "time", "exit_status", "error"}
#ifndef TR_CLI_TRAIN_HISTORY_H
#define TR_CLI_TRAIN_HISTORY_H

#include <tranche/run.h>

// Keeps what a run says before it begins; later, warnings are a line each.
void cli_history_say(tr_message_level level, const char *line);
// Appends the start, behind so many steps, to the file of the run's out folder, if it
// has one. Called on the rank that speaks alone. What cannot be written is said:
// training goes on without.
void cli_history_begin(tr_run *run, int64_t step);
// Appends the end, if there is a start. error: NULL: none.
void cli_history_end(int exit_status, const char *error);

#endif
