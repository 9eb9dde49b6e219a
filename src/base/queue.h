// Tasks between one caller, who puts them in and waits, and the thread that does them
// and finishes them in the same order. A broken queue lets everybody through.
#ifndef TR_BASE_QUEUE_H
#define TR_BASE_QUEUE_H

#include <tranche/status.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tr_queue_options {
    void *ring; // [capacity] tasks of `size` bytes; the caller's, as long as the queue
    size_t size;
    int64_t capacity;
    // A thread that has not told for so many seconds that it is at work, while somebody
    // waits, hangs: the queue breaks with that error. 0: it may take its time.
    int patience;
    tr_status hung_status;
    const char *hung_message; // " for 8 s" follows
    bool counted_on; // another process waits for a task: this one need not, for it to
                     // begin (base/pace.h)
} tr_queue_options;

// When a task was at work: tr__seconds(), from when the thread took it until it was
// finished.
typedef struct tr_task_span {
    double begin, end;
} tr_task_span;

typedef struct tr_queue {
    tr_queue_options options;
    pthread_mutex_t lock;
    pthread_cond_t more, done; // something to do; something done
    // Under the lock. Tickets: done ones are up to `finished`.
    int64_t started, finished;
    int64_t awaited; // the latest that somebody waits for, or has waited for
    bool poked;
    tr_error error;
    // Tasks after the first `watch_from` are noted; NULL: none.
    tr_task_span *watch;
    int64_t watch_from, watch_count;
    _Atomic int64_t alive; // changes as long as the thread is at work
    atomic_bool broken;    // written under the lock
} tr_queue;

// queue: zeroed.
void tr__queue_init(tr_queue *queue, const tr_queue_options *options);
void tr__queue_destroy(tr_queue *queue);

// The caller's side. put: waits while the queue is full; returns the ticket, which
// counts from 1.
int64_t tr__queue_put(tr_queue *queue, const void *task);
tr_status tr__queue_wait(tr_queue *queue, int64_t ticket, tr_error *err);
// The tasks that are put in from now on, `count` at most, are noted in spans: [count],
// borrowed until the next call (NULL: none are noted). Each is there once somebody has
// waited for it.
void tr__queue_watch(tr_queue *queue, tr_task_span *spans, int64_t count);
// Ends the thread's rest.
void tr__queue_poke(tr_queue *queue);

// The thread's side. next: the oldest unfinished task, or the one so many behind it; it
// stays where it is until tr__queue_finish, which is for the oldest. false: none.
bool tr__queue_next(tr_queue *queue, int64_t behind, void *task);
void tr__queue_finish(tr_queue *queue);
// The thread is at work.
void tr__queue_live(tr_queue *queue);
// Until there is a task, a poke, or `seconds` are over.
void tr__queue_rest(tr_queue *queue, double seconds);
// From now on every wait returns this error and there is no task. The first call
// counts.
void tr__queue_break(tr_queue *queue, const tr_error *error);

#endif
