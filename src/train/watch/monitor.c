#include "train/watch/monitor.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>

enum { TEXT_MAX = 1 << 24 }; // bytes of a text of the run

static tr_status make_folder(const tr_monitor_place *place, char **folder,
                             tr_error *err) {
    *folder = tr__format("%s/%s", place->path, place->job);
    return *folder ? tr__folder_create(*folder, err)
                   : tr_fail(err, TR_MEMORY, "no memory for a monitor");
}

static tr_status open_csv(tr_monitors *to, const tr_monitors_ask *ask, tr_error *err) {
    char *folder = NULL;
    tr_status status = make_folder(ask->csv, &folder, err);
    if (status == TR_OK) {
        status = tr__csv_monitor_open(&to->csv, folder, ask->samples, err);
    }
    tr__free(folder);
    return status;
}

// The run's settings, or its plan: a file of the out folder, as lines of their own.
static tr_status put_text(const tr_monitors *to, const char *out, const char *name,
                          tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    char *path = tr__format("%s/%s", out, name);
    tr_status status = path ? tr__file_read(path, TEXT_MAX, &text, &bytes, err)
                            : tr_fail(err, TR_MEMORY, "no memory for a monitor");
    char *fenced = status == TR_OK ? tr__format("```\n%s\n```", text) : NULL;
    if (status == TR_OK && !fenced) {
        status = tr_fail(err, TR_MEMORY, "no memory for a monitor");
    }
    if (status == TR_OK) {
        status = tr__event_monitor_text(&to->events, name, fenced, err);
    }
    tr__free(fenced);
    tr__free(text);
    tr__free(path);
    return status;
}

static tr_status open_events(tr_monitors *to, const tr_monitors_ask *ask,
                             tr_error *err) {
    char *folder = NULL;
    tr_status status = make_folder(ask->events, &folder, err);
    if (status == TR_OK) {
        status = tr__event_monitor_open(&to->events, folder, ask->samples, err);
    }
    if (status == TR_OK && to->events.begun) {
        status = put_text(to, ask->out, "run.json", err);
        status = status == TR_OK ? put_text(to, ask->out, "plan.txt", err) : status;
    }
    tr__free(folder);
    return status;
}

tr_status tr__monitors_open(tr_monitors *to, const tr_monitors_ask *ask,
                            tr_error *err) {
    tr_status status = TR_OK;
    *to = (tr_monitors){.log = ask->log};
    if (ask->csv->enabled) {
        status = open_csv(to, ask, err);
    }
    if (status == TR_OK && ask->events->enabled) {
        status = open_events(to, ask, err);
    }
    return status;
}

static void say_end(const tr_monitors *to, const char *what, const tr_error *why) {
    tr__warn(to->log, "%s ends here; training goes on: %s", what, why->message);
}

void tr__monitors_put(tr_monitors *to, const tr_monitor_value *values, int count,
                      int64_t samples) {
    tr_error err = {0};
    if (to->csv.folder &&
        tr__csv_monitor_put(&to->csv, values, count, samples, &err) != TR_OK) {
        say_end(to, "csv_monitor", &err);
        tr__csv_monitor_close(&to->csv);
    }
    if (to->events.path &&
        tr__event_monitor_put(&to->events, values, count, samples, &err) != TR_OK) {
        say_end(to, "tensorboard", &err);
        tr__event_monitor_close(&to->events);
    }
}

void tr__monitors_flush(tr_monitors *to) {
    tr_error err = {0};
    if (to->csv.folder && tr__csv_monitor_flush(&to->csv, &err) != TR_OK) {
        say_end(to, "csv_monitor", &err);
        tr__csv_monitor_close(&to->csv);
    }
}

void tr__monitors_close(tr_monitors *to) {
    tr__monitors_flush(to);
    tr__csv_monitor_close(&to->csv);
    tr__event_monitor_close(&to->events);
}
