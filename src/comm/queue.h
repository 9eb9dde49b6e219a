// Tasks between the caller, who puts them in and waits, and the thread that does them
// in the same order. A broken queue lets everybody through.
#ifndef TR_COMM_QUEUE_H
#define TR_COMM_QUEUE_H

#include "comm/transport.h"

#include <pthread.h>

typedef struct tr_queue {
    pthread_mutex_t lock;
    pthread_cond_t more, done; // something to do; something done
    // Under the lock. Tickets: done ones are up to `finished`.
    tr_task ring[TR_COMM_QUEUE];
    int64_t started, finished;
    bool poked;
    tr_error error;
    _Atomic int64_t alive; // changes as long as the thread is at work
    atomic_bool broken;    // written under the lock
} tr_queue;

void tr__queue_init(tr_queue *queue);
void tr__queue_destroy(tr_queue *queue);

// The caller's side. put: waits while the queue is full; returns the ticket.
int64_t tr__queue_put(tr_queue *queue, const tr_task *task);
// A thread that does not come back (from a call of MPI that hangs) breaks the queue.
tr_status tr__queue_wait(tr_queue *queue, int64_t ticket, tr_error *err);
// Ends the thread's rest.
void tr__queue_poke(tr_queue *queue);

// The thread's side. next: the oldest unfinished task, which stays where it is until
// tr__queue_finish; false: none.
bool tr__queue_next(tr_queue *queue, tr_task *task);
void tr__queue_finish(tr_queue *queue);
// The thread is at work.
void tr__queue_live(tr_queue *queue);
// Until there is a task, a poke, or `seconds` are over.
void tr__queue_rest(tr_queue *queue, double seconds);
// From now on every wait returns this error and there is no task. The first call
// counts.
void tr__queue_break(tr_queue *queue, const tr_error *error);

#endif
