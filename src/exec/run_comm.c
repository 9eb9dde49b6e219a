// Steps that ranks take together.
#include "exec/walk.h"

tr_status tr__run_wait(const tr_work *work, const tr_plan_step *step) {
    tr_status status = TR_OK;
    if (step->wait > 0) {
        status =
            tr__comm_wait(work->ex->comm, work->first_ticket + step->wait, work->err);
    }
    for (int s = 0; s < TR_STREAMS && status == TR_OK; s++) {
        tr_carrier *carrier = work->ex->carrier[s];
        int64_t steps = carrier ? tr__step_wait(step, (tr_stream)s) : 0;
        if (steps > 0) {
            status = tr__carrier_wait(carrier, work->first[s] + steps, work->err);
        }
    }
    return status;
}

tr_status tr__run_exchange(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    tr_exchange e;
    if (tr__step_exchange(ex->plan, step, &e)) {
        tr_comm_op op = {.kind = e.kind,
                         .type = e.type,
                         .count = e.count,
                         .shard = e.shard,
                         .send = tr__at_region(ex, &e.send),
                         .recv = tr__at_region(ex, &e.recv),
                         .add = e.adds};
        tr__comm_start(ex->comm, &op);
    }
    return TR_OK; // a fault comes up where somebody waits
}
