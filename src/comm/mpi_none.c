// A build without MPI: it runs, but on one rank alone.
#include "comm/mpi.h"

#include <stddef.h>

tr_status tr__mpi_open(const tr_process_launcher *launcher, tr_comm **out,
                       tr_error *err) {
    *out = NULL;
    return tr_fail(err, TR_COMM,
                   "started by %s, but this program was built without MPI: run it "
                   "alone, or build it with -DTRANCHE_MPI=ON",
                   launcher->name);
}

bool tr__mpi_speaks_unstarted(int rank) {
    return rank <= 0;
}
