// Host steps: what no kernel does, and what is not of a micro-batch.
#include "base/clock.h"
#include "base/machine.h"
#include "exec/walk.h"

#include <math.h>

// What other ranks are told beside the sums: how this one fares.
tr_status tr__run_host(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    double *record = tr__own_record(ex);
    (void)step;
    record[TR_RECORD_ASKED] = fmax(record[TR_RECORD_ASKED], ex->asks_save);
    record[TR_RECORD_SECONDS] = tr__seconds() - work->begin;
    record[TR_RECORD_WAIT] =
        ex->comm ? tr__comm_totals(ex->comm).wait_seconds - work->waited : 0;
    record[TR_RECORD_PEAK] = (double)tr__process_peak();
    return TR_OK;
}
