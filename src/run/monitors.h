// Files of a run's values beside metrics.jsonl, by DeepSpeed's keys.
#ifndef TR_RUN_MONITORS_H
#define TR_RUN_MONITORS_H

#include <stdbool.h>

// csv_monitor, tensorboard: files in <path>/<job>.
typedef struct tr_monitor_place {
    bool enabled;
    char *path, *job; // NULL where it is not enabled
} tr_monitor_place;

#endif
