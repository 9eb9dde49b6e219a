// Host steps: what this rank tells the others of itself, and the engine's decision on
// what all have told.
#include "base/clock.h"
#include "base/machine.h"
#include "exec/walk.h"

// What other ranks are told beside the sums: how this one fares.
static tr_status report(tr_work *work) {
    tr_executor *ex = work->ex;
    double *own = tr__own_statistics(ex);
    own[TR_STATISTICS_ASKED] = ex->flags.stopped ? TR_ASKS_END
                               : ex->asks_save   ? TR_ASKS_SAVE
                                                 : TR_ASKS_NOTHING;
    own[TR_STATISTICS_SECONDS] = tr__seconds() - work->begin;
    own[TR_STATISTICS_WAIT] =
        ex->comm ? tr__comm_totals(ex->comm).wait_seconds - work->waited : 0;
    own[TR_STATISTICS_PEAK] = (double)tr__process_peak();
    ex->flags.reported = true;
    return TR_OK;
}

// Launches that are under way read the order that the engine may change. A deferred
// update is made then; and a walk that has been stopped ends here.
static tr_status decide(tr_work *work) {
    tr_executor *ex = work->ex;
    tr_walk_flags *flags = &ex->flags;
    const tr_walk_calls *calls = &work->calls;
    tr_status status = tr__streams_wait(ex, work->err);
    flags->deferred = false;
    flags->decision = TR_DECIDE_END;
    if (status == TR_OK && !flags->stopped && calls->decide) {
        status = calls->decide(calls->user, &flags->decision, work->err);
    }
    return status;
}

tr_status tr__run_host(tr_work *work, const tr_plan_step *step) {
    switch (step->payload.call) {
    case TR_HOST_DECIDE:
        return decide(work);
    case TR_HOST_REPORT:
        return report(work);
    default: // the caller has done its part while the walk stood before the step
        return TR_OK;
    }
}
