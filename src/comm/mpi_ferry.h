// Exchanges as tasks ask for them: of memory that messages reach at once, of other
// memory by way of the staging (ferry.h). Nothing here waits.
#ifndef TR_COMM_MPI_FERRY_H
#define TR_COMM_MPI_FERRY_H

#include "comm/ferry.h"
#include "comm/mpi_move.h"

typedef struct tr_mpi_ferry {
    tr_mpi_mover mover; // of whole exchanges, or of one slice after the other
    bool ferries;       // the exchange under way does
    tr_ferrying of;
    bool moving; // its slice is being exchanged
} tr_mpi_ferry;

tr_status tr__ferry_begin(tr_mpi_ferry *ferry, const tr_task *task, tr_error *err);
// *moved: something has happened. *finished: all of it has.
tr_status tr__ferry_advance(tr_mpi_ferry *ferry, bool *moved, bool *finished,
                            tr_error *err);

#endif
