// The schedule that a run file asks for.
#ifndef TR_RUN_RESOLVE_SCHEDULE_READ_H
#define TR_RUN_RESOLVE_SCHEDULE_READ_H

#include "config/config.h"
#include "run/schedule.h"

// What "auto" lengths are made from, in the schedule's unit.
typedef struct tr_run_length {
    int64_t run;    // the whole run; 0: not known
    int64_t update; // one optimizer step, about
    bool changes;   // it is not known because the batch follows the noise scale
} tr_run_length;

tr_schedule_unit tr__schedule_read_unit(const tr_config *config);

// Records in the config what "auto" and left-out keys came to. TR_USAGE: a key that the
// schedule needs is missing, or the run's length is needed and not known.
tr_status tr__schedule_read(tr_config *config, tr_run_length length, tr_schedule *out,
                            tr_error *err);

#endif
