// Steps that ranks take together.
#include "exec/walk.h"

tr_status tr__run_wait(const tr_work *work, const tr_plan_step *step) {
    tr_status status = TR_OK;
    int64_t messages = step->wait[TR_STREAM_COMM];
    if (messages > 0) {
        status = tr__comm_wait(work->ex->comm, work->first_ticket + messages, work->err);
    }
    for (int s = 0; s < TR_STREAMS && status == TR_OK; s++) {
        tr_carrier *carrier = work->ex->carrier[s];
        if (carrier && step->wait[s] > 0) {
            int64_t ticket = work->first[s] + step->wait[s];
            status = tr__carrier_wait(carrier, ticket, work->err);
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
