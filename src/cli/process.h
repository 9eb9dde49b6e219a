// What a process that computes is told before it begins.
#ifndef TR_CLI_PROCESS_H
#define TR_CLI_PROCESS_H

// How long OpenMP's threads spin while they wait: starts the program again with little
// of it, unless the user has said how to wait. How many heaps malloc keeps: one.
void cli_prepare_process(char **argv);

#endif
