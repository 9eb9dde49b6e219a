// How long OpenMP's threads spin while they wait.
#ifndef TR_CLI_SPIN_H
#define TR_CLI_SPIN_H

// Starts the program again with short spinning, unless the user has said how to wait.
void cli_limit_spinning(char **argv);

#endif
