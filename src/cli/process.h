// What a process is made ready with before it begins.
#ifndef TR_CLI_PROCESS_H
#define TR_CLI_PROCESS_H

// A standard stream that is closed is replaced by one that fails: its number would else
// be that of the next file that is opened, and what is printed would go into that.
void cli_guard_streams(void);

// How long OpenMP's threads spin while they wait: starts the program again with little
// of it, unless the user has said how to wait. How many heaps malloc keeps: one.
void cli_prepare_process(char **argv);

#endif
