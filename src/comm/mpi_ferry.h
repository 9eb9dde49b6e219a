// Exchanges as tasks ask for them: of memory that messages reach at once, of other
// memory by way of the staging (tr_comm_ferry).
//
// A ferried exchange goes slice by slice. A slice has the same elements of each
// member's part; it is copied into a slot of the staging, exchanged there, and what
// came of it is copied out. While one slice is exchanged, the next one is copied in and
// the one before it out. So every element is sent once and added in the same order as
// if messages reached it. Copies of a slice into its slot follow those out of it,
// because a ferry keeps their order.
//
//     slot    [members][slice], then [slice] for the sum of a reduction
#ifndef TR_COMM_MPI_FERRY_H
#define TR_COMM_MPI_FERRY_H

#include "comm/mpi_move.h"

typedef struct tr_mpi_ferry {
    tr_mpi_mover mover; // of whole exchanges, or of one slice after the other
    // The exchange that is ferried:
    bool ferries; // there is one
    tr_task task;
    int64_t slice;                  // elements of a part in a slice, at most
    int64_t slices, loaded, moved;  // of all, copied in (or on the way), exchanged
    int64_t in[TR_COMM_SLOTS], out; // tickets: of a slot's slice; of all copied out
    bool moving;                    // slice `moved` is being exchanged
} tr_mpi_ferry;

tr_status tr__ferry_begin(tr_mpi_ferry *ferry, const tr_task *task, tr_error *err);
// *moved: something has happened. *finished: all of it has.
tr_status tr__ferry_advance(tr_mpi_ferry *ferry, bool *moved, bool *finished,
                            tr_error *err);

#endif
