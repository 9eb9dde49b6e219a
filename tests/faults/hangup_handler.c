// A library that installs a handler for SIGHUP before main() begins, as UCX does.
#include <signal.h>
#include <stddef.h>

static void ignore(int number) {
    (void)number;
}

__attribute__((constructor)) static void install(void) {
    struct sigaction action = {.sa_handler = ignore};
    sigaction(SIGHUP, &action, NULL);
}
