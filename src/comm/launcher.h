// Who has started this process: its environment tells.
#ifndef TR_COMM_LAUNCHER_H
#define TR_COMM_LAUNCHER_H

#include <stdbool.h>

typedef struct tr_process_launcher {
    const char *name; // "mpirun of Open MPI"; NULL: no launcher
    int rank, ranks;  // -1: it does not say
    bool mute;        // it has started ranks, but gives MPI nothing to find them by
} tr_process_launcher;

tr_process_launcher tr__launcher_find(void);

#endif
