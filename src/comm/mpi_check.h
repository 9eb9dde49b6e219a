// MPI's return codes in words.
#ifndef TR_COMM_MPI_CHECK_H
#define TR_COMM_MPI_CHECK_H

#include <tranche/status.h>

// TR_COMM when `code` is not MPI_SUCCESS. call: "MPI_Isend".
tr_status tr__mpi_check(int code, const char *call, tr_error *err);

#endif
