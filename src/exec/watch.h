// Watching a step: when each step of the plan was at work, noted in memory that was
// taken before.
#ifndef TR_EXEC_WATCH_H
#define TR_EXEC_WATCH_H

#include "base/queue.h"
#include "plan/print/trace.h"

// What is handed to a stream that works beside the walk.
typedef struct tr_watched {
    tr_task_span *times; // [capacity] in the order of starting
    size_t *span_of;     // [capacity] where each is in tr_watch.spans
    size_t count, capacity;
    size_t first; // of the walk that is at work
} tr_watched;

typedef struct tr_watch {
    tr_span *spans;
    size_t count, capacity;
    tr_watched streams[TR_STREAMS];
    double origin; // tr__seconds() at the sequence's beginning
} tr_watch;

// How many tasks each stream has been handed so far.
typedef struct tr_tickets {
    int64_t of[TR_STREAMS];
} tr_tickets;

// Room for one optimizer step of the plan. Errors: TR_MEMORY.
tr_status tr__watch_create(const tr_plan *plan, tr_watch **out, tr_error *err);
void tr__watch_destroy(tr_watch *watch); // NULL-safe

// By the executor. A walk that begins with the sequence's first step forgets what was
// noted before.
void tr__watch_begin(tr_watch *watch, bool first);
// Where the times of a stream's tasks go; *count: how many there is room for.
tr_task_span *tr__watch_times(tr_watch *watch, tr_stream stream, int64_t *count);
// A step was at work from `begin` until now; or, where it has handed tasks to streams,
// they are.
void tr__watch_step(tr_watch *watch, const tr_sequence *sequence, int32_t step,
                    double begin, const tr_tickets *before, const tr_tickets *after);
// All tasks of the walk are done.
void tr__watch_end(tr_watch *watch);

#endif
