// `tranche train --ranks N`: the program starts its ranks itself, on this machine.
#ifndef TR_CLI_LAUNCH_H
#define TR_CLI_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

// Must this process start the ranks, rather than be one of them?
bool cli_must_launch(int64_t ranks);

// Runs `tranche train ARGUMENTS...` on so many ranks and returns the exit status. A
// signal that asks for an end is handed on; a second one ends the ranks at once.
int cli_launch(int64_t ranks, int argc, char **argv);

#endif
