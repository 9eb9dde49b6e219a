// The schedule that a run file asks for.
#ifndef TR_TRAIN_SCHEDULE_READ_H
#define TR_TRAIN_SCHEDULE_READ_H

#include "config/config.h"
#include "train/schedule.h"

// `steps`: optimizer steps of the run, what "auto" counts are made from; 0: not known.
// Records in the config what "auto" and left-out keys came to. TR_USAGE: a key that the
// schedule needs is missing, or steps is needed and not known.
tr_status tr__schedule_read(tr_config *config, int64_t steps, tr_schedule *out,
                            tr_error *err);

#endif
