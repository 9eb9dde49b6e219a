// SIGHUP, which the system sends when the terminal is closed.
#ifndef TR_CLI_HANGUP_H
#define TR_CLI_HANGUP_H

#include <stdbool.h>

// Was SIGHUP ignored when the program was started, as nohup does it?
bool cli_hangup_was_ignored(void);

// Ignores SIGHUP again if it was ignored when the program was started. What runs in
// this process's place, or as its child, inherits that.
void cli_hangup_restore(void);

#endif
