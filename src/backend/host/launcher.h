// Launches kernels on a thread of its own, one task after the other: the compute stream
// of a discrete device, and the host's beside it.
//
// Tasks are queued and worked off in the order of starting while the caller goes on.
// Nothing is allocated after tr__launcher_create. All calls are for one calling thread.
#ifndef TR_BACKEND_HOST_LAUNCHER_H
#define TR_BACKEND_HOST_LAUNCHER_H

#include "base/queue.h"

#include <tranche/status.h>

typedef struct tr_launcher tr_launcher;

typedef struct tr_launcher_options {
    // On the launcher's thread. An error ends the stream's work: all that wait get it.
    tr_status (*run)(void *user, const void *task, tr_error *err);
    void *user;
    size_t task_bytes; // tasks are copied
    int threads;       // that a task's parallel regions have
} tr_launcher_options;

// TR_MEMORY; TR_INTERNAL: no thread can be started.
tr_status tr__launcher_create(const tr_launcher_options *options, tr_launcher **out,
                              tr_error *err);
// Waits for the task that is under way and drops the rest. NULL-safe.
void tr__launcher_destroy(tr_launcher *launcher);

// Queues a task; returns its ticket, which counts from 1; waits while the queue is
// full.
int64_t tr__launcher_start(tr_launcher *launcher, const void *task);
// Until that task, and so all before it, is done. Errors: the first of a task.
tr_status tr__launcher_wait(tr_launcher *launcher, int64_t ticket, tr_error *err);
int64_t tr__launcher_newest(const tr_launcher *launcher); // ticket; 0: none yet
// The tasks that are started from now on, `count` at most, are noted in spans: [count],
// borrowed until the next call (NULL: none are noted).
void tr__launcher_watch(tr_launcher *launcher, tr_task_span *spans, int64_t count);

#endif
