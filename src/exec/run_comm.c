// Steps that the ranks of a group take together.
#include "exec/walk.h"

tr_status tr__run_exchange(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    tr_exchange e;
    if (!tr__step_exchange(ex->plan, step, &e)) {
        return TR_OK;
    }
    tr_comm_op op = {.kind = e.kind,
                     .type = e.type,
                     .count = e.count,
                     .shard = e.shard,
                     .send = tr__at_region(ex, &e.send),
                     .recv = tr__at_region(ex, &e.recv),
                     .add = e.adds};
    tr_status status =
        tr__mesh_group(&ex->plan->request.mesh, e.group, &op.group, work->err);
    if (status == TR_OK) {
        tr__comm_start(ex->comm, &op); // a fault comes up where somebody waits
    }
    return status;
}
