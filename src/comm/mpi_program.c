// What starts ranks: which MPI the build has found, and who has started this process.
#include <tranche/comm.h>

#include "comm/launcher.h"

tr_mpi tr_comm_mpi(const char **mpirun) {
    if (mpirun) {
        *mpirun = TR_MPIRUN;
    }
    return TR_MPIRUN[0] == '\0' ? TR_MPI_NONE
           : TR_MPI_IS_MPICH    ? TR_MPI_MPICH
                                : TR_MPI_OPEN_MPI;
}

const char *tr_comm_launcher(void) {
    return tr__launcher_find().name;
}
