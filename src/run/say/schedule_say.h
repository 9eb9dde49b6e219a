// A schedule in words.
#ifndef TR_RUN_SAY_SCHEDULE_SAY_H
#define TR_RUN_SAY_SCHEDULE_SAY_H

#include "run/schedule.h"

#include <stddef.h>

// "peak rate 0.001: up over 100 updates (log), then constant": of a parameter group
// whose own learning rate is `own_lr`, all rates multiplied by `scale`, in a run of so
// many updates (0: not known). dst: [size]
void tr__schedule_say(const tr_schedule *schedule, double own_lr, double scale,
                      int64_t updates, char *dst, size_t size);

#endif
