// Watching a step: when each step of the plan was at work, noted in memory that was
// taken before.
#ifndef TR_EXEC_WATCH_H
#define TR_EXEC_WATCH_H

#include "comm/comm.h"
#include "plan/trace.h"

typedef struct tr_watch {
    tr_span *spans;
    size_t count, capacity;
    tr_comm_span *messages; // of the ranks' operations, in their order
    size_t *span_of;        // [message_capacity] where each is in spans
    size_t message_count, message_capacity;
    size_t first_message; // of the walk that is at work
    double origin;        // tr__seconds() at the sequence's beginning
} tr_watch;

// Room for one optimizer step of the plan. Errors: TR_MEMORY.
tr_status tr__watch_create(const tr_plan *plan, tr_watch **out, tr_error *err);
void tr__watch_destroy(tr_watch *watch); // NULL-safe

// By the executor. `comm`: NULL: one rank. A walk that begins with the sequence's first
// step forgets what was noted before.
void tr__watch_begin(tr_watch *watch, tr_comm *comm, bool first);
// A step was at work from `begin` until now; or it has started `messages` operations.
void tr__watch_step(tr_watch *watch, int32_t step, tr_stream stream, double begin,
                    int64_t messages);
// All operations of the walk are done.
void tr__watch_end(tr_watch *watch, tr_comm *comm);

#endif
