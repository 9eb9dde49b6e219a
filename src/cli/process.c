#include "cli/process.h"

#include "cli/hangup.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

// Opened the wrong way around: reading from or writing to it fails with EBADF, as it
// did on the closed stream. open() gives the lowest free number, here the stream's own.
void cli_guard_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++) {
        if (fcntl(stream, F_GETFD) < 0) {
            open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

// GCC's OpenMP lets a thread that waits for the others spin for milliseconds. On a
// machine that others use too, the one it waits for may not be running at all, and a
// step takes ten times as long. A thousand turns take about as long as the system needs
// to put a thread to sleep and wake it: on a quiet machine they are as fast as more,
// and on a busy one little is lost (bench/busy.sh). libgomp reads the variable when it
// is loaded, so the program has to start again.
static void limit_spinning(char **argv) {
    if (!getenv("GOMP_SPINCOUNT") && !getenv("OMP_WAIT_POLICY") &&
        setenv("GOMP_SPINCOUNT", "1000", 1) == 0) {
        cli_hangup_restore();
        execv("/proc/self/exe", argv); // where it cannot, all is as before
    }
}

// glibc gives each thread that allocates a heap of its own and 64 MB of addresses for
// it, which count where the process is limited (ulimit -v). Nothing here allocates
// often.
static void limit_heaps(void) {
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

void cli_prepare_process(char **argv) {
    limit_spinning(argv);
    limit_heaps();
}
