// By which transport the ranks of this process talk.
#include "comm/launcher.h"

#include "base/arguments.h"
#include "comm/mpi.h"
#include "comm/self.h"
#include "comm/transport.h"

tr_status tr_comm_open(tr_comm **out, tr_error *err) {
    static const char own_name[] = "tr_comm_open";
    tr_status given = tr__need(out, own_name, "out", err);
    if (given != TR_OK) {
        return given;
    }
    tr_process_launcher launcher = tr__launcher_find();
    *out = NULL;
    if (!launcher.name || launcher.ranks == 1) {
        return tr__self_open(out, err);
    }
    if (launcher.mute) {
        return tr_fail(err, TR_COMM,
                       "%s has started %d ranks that cannot find each other: use srun "
                       "--mpi=pmix or --mpi=pmi2 (srun --mpi=list shows the choices)",
                       launcher.name, launcher.ranks);
    }
    return tr__mpi_open(&launcher, out, err);
}

bool tr_comm_speaks(const tr_comm *comm) {
    return comm ? comm->transport->speaks(comm)
                : tr__mpi_speaks_unstarted(tr__launcher_find().rank);
}
