// The ranks that an MPI launcher has started.
//
//   mpi.c          the caller's side: a queue between it and the thread
//   mpi_world.c    the thread that makes every call of MPI; MPI's beginning and end
//   mpi_move.c     gather and reduce, message by message
//   mpi_control.c  heartbeats, notices, errors
//   mpi_none.c     in place of all these in a build without MPI
#ifndef TR_COMM_MPI_H
#define TR_COMM_MPI_H

#include "comm/launcher.h"

#include <tranche/comm.h>

tr_status tr__mpi_open(const tr_process_launcher *launcher, tr_comm **out,
                       tr_error *err);
// tr_comm_speaks after tr__mpi_open has failed; `rank`: as the launcher numbers them.
bool tr__mpi_speaks_unstarted(int rank);

#endif
