#include "cli/hangup.h"

#include <signal.h>
#include <stddef.h>

static bool ignored;

static void look(void) {
    struct sigaction action;
    ignored = sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Libraries may install a handler before main() begins: UCX, which Open MPI 5 is linked
// with, does so for SIGHUP. Functions in this section run before those of any library.
__attribute__((section(".preinit_array"),
               used)) static void (*const first)(void) = look;

bool cli_hangup_was_ignored(void) {
    return ignored;
}

void cli_hangup_restore(void) {
    if (ignored) {
        signal(SIGHUP, SIG_IGN);
    }
}
