// Monitors: the values of a run in the files of other programs, beside metrics.jsonl.
// Tags and layout are DeepSpeed's; a value's number is that of the samples so far. One
// rank writes. A monitor that cannot write any more says so once, and the run goes on.
#ifndef TR_TRAIN_WATCH_MONITOR_H
#define TR_TRAIN_WATCH_MONITOR_H

#include "base/crc32.h"
#include "base/log.h"
#include "run/monitors.h"

#include <tranche/status.h>

#include <stdint.h>

// X(name, tag)
#define TR_MONITOR_LIST(X)                                                             \
    X(LOSS, "Train/Samples/train_loss")                                                \
    X(RATE, "Train/Samples/lr")                                                        \
    X(LOSS_SCALE, "Train/Samples/loss_scale")                                          \
    X(NORM, "Train/Samples/grad_norm")                                                 \
    X(SPEED, "Train/Samples/tokens_per_second")                                        \
    X(VALIDATION_LOSS, "Validation/Samples/loss")                                      \
    X(VALIDATION_ACCURACY, "Validation/Samples/accuracy")

typedef enum tr_monitor_tag {
#define TR_MONITOR_ENUM(name, tag) TR_MONITOR_##name,
    TR_MONITOR_LIST(TR_MONITOR_ENUM)
#undef TR_MONITOR_ENUM
        TR_MONITOR_TAGS
} tr_monitor_tag;
extern const char *const tr__monitor_tags[TR_MONITOR_TAGS]; // monitor_tags.c

typedef struct tr_monitor_value {
    tr_monitor_tag tag;
    double value;
} tr_monitor_value;

// ---- monitor_csv.c: csv_monitor, a file for each tag
enum { TR_CSV_WAIT = 4096 };
typedef struct tr_csv_monitor {
    char *folder; // NULL: none
    struct {
        int file; // -1: no value yet
        size_t bytes;
        char rows[TR_CSV_WAIT]; // that wait to be written, for a second at most
    } of[TR_MONITOR_TAGS];
    double written; // tr__seconds()
} tr_csv_monitor;

// Cuts the files that an earlier process has left in the folder back to `samples`; 0:
// to nothing. TR_IO: what has a file's name is no such file.
tr_status tr__csv_monitor_open(tr_csv_monitor *to, const char *folder, int64_t samples,
                               tr_error *err);
tr_status tr__csv_monitor_put(tr_csv_monitor *to, const tr_monitor_value *values,
                              int count, int64_t samples, tr_error *err);
tr_status tr__csv_monitor_flush(tr_csv_monitor *to, tr_error *err);
void tr__csv_monitor_close(tr_csv_monitor *to); // rows that wait are lost

// ---- monitor_events.c: tensorboard, one event file
typedef struct tr_event_monitor {
    char *path; // NULL: none
    int file;
    bool begun; // the file had nothing to be kept, and begins anew
    tr_crc32 crc;
} tr_event_monitor;

tr_status tr__event_monitor_open(tr_event_monitor *to, const char *folder,
                                 int64_t samples, tr_error *err);
tr_status tr__event_monitor_put(const tr_event_monitor *to,
                                const tr_monitor_value *values, int count,
                                int64_t samples, tr_error *err);
// A text for the page "Text", as it is.
tr_status tr__event_monitor_text(const tr_event_monitor *to, const char *tag,
                                 const char *text, tr_error *err);
void tr__event_monitor_close(tr_event_monitor *to);

// ---- monitor.c
typedef struct tr_monitors {
    tr_csv_monitor csv;
    tr_event_monitor events;
    const tr_log *log;
} tr_monitors;

typedef struct tr_monitors_ask {
    const tr_monitor_place *csv, *events;
    const char *out;   // whose run.json and plan.txt are put in as texts
    int64_t samples;   // from there on values are written
    const tr_log *log; // is told of what cannot be written
} tr_monitors_ask;

// Those that are enabled. TR_IO names the folder or the file. *to is to be closed also
// after an error.
tr_status tr__monitors_open(tr_monitors *to, const tr_monitors_ask *ask, tr_error *err);
void tr__monitors_put(tr_monitors *to, const tr_monitor_value *values, int count,
                      int64_t samples);
// Writes what waits: before a checkpoint, from which another process goes on.
void tr__monitors_flush(tr_monitors *to);
void tr__monitors_close(tr_monitors *to);

#endif
