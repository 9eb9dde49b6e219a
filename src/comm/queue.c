#include "comm/queue.h"

#include <time.h>

enum { STILL_MOST = 8 }; // seconds

void tr__queue_init(tr_queue *queue) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->more, &monotonic);
    pthread_cond_init(&queue->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    atomic_init(&queue->broken, false);
}

void tr__queue_destroy(tr_queue *queue) {
    pthread_cond_destroy(&queue->done);
    pthread_cond_destroy(&queue->more);
    pthread_mutex_destroy(&queue->lock);
}

static struct timespec after(double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + (int64_t)(seconds * 1e9);
    until.tv_sec += nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    return until;
}

static void break_off(tr_queue *queue, const tr_error *error) {
    if (!atomic_load(&queue->broken)) {
        queue->error = *error;
        atomic_store(&queue->broken, true);
    }
    queue->finished = queue->started;
    pthread_cond_broadcast(&queue->done);
}

// ---- the caller's side

// Waits a while for `done`. *still: how often in a row the thread had not moved.
static void wait_done(tr_queue *queue, int *still, int64_t *seen) {
    struct timespec until = after(1);
    if (pthread_cond_timedwait(&queue->done, &queue->lock, &until) == 0) {
        return;
    }
    int64_t alive = atomic_load(&queue->alive);
    *still = alive == *seen ? *still + 1 : 0;
    *seen = alive;
    if (*still == STILL_MOST) {
        tr_error error = {0};
        tr_fail(&error, TR_COMM, "a call of MPI has not returned for %d s", STILL_MOST);
        break_off(queue, &error);
    }
}

int64_t tr__queue_put(tr_queue *queue, const tr_task *task) {
    int still = 0;
    int64_t seen = -1;
    pthread_mutex_lock(&queue->lock);
    while (queue->started - queue->finished == TR_COMM_QUEUE &&
           !atomic_load(&queue->broken)) {
        wait_done(queue, &still, &seen);
    }
    int64_t ticket = queue->started + 1;
    if (!atomic_load(&queue->broken)) { // else nobody will look at it
        queue->ring[queue->started % TR_COMM_QUEUE] = *task;
        queue->started = ticket;
        pthread_cond_signal(&queue->more);
    }
    pthread_mutex_unlock(&queue->lock);
    return ticket;
}

tr_status tr__queue_wait(tr_queue *queue, int64_t ticket, tr_error *err) {
    int still = 0;
    int64_t seen = -1;
    pthread_mutex_lock(&queue->lock);
    while (queue->finished < ticket && !atomic_load(&queue->broken)) {
        wait_done(queue, &still, &seen);
    }
    pthread_mutex_unlock(&queue->lock);
    return atomic_load(&queue->broken)
               ? tr_fail(err, queue->error.status, "%s", queue->error.message)
               : TR_OK;
}

void tr__queue_poke(tr_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->poked = true;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

// ---- the thread's side

bool tr__queue_next(tr_queue *queue, tr_task *task) {
    pthread_mutex_lock(&queue->lock);
    bool present = queue->finished < queue->started;
    if (present) {
        *task = queue->ring[queue->finished % TR_COMM_QUEUE];
    }
    pthread_mutex_unlock(&queue->lock);
    return present;
}

void tr__queue_finish(tr_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->finished += queue->finished < queue->started;
    pthread_cond_signal(&queue->done);
    pthread_mutex_unlock(&queue->lock);
}

void tr__queue_live(tr_queue *queue) {
    atomic_fetch_add_explicit(&queue->alive, 1, memory_order_relaxed);
}

void tr__queue_rest(tr_queue *queue, double seconds) {
    struct timespec until = after(seconds);
    int result = 0;
    pthread_mutex_lock(&queue->lock);
    while (queue->finished == queue->started && !queue->poked && result == 0) {
        result = pthread_cond_timedwait(&queue->more, &queue->lock, &until);
    }
    queue->poked = false;
    pthread_mutex_unlock(&queue->lock);
}

void tr__queue_break(tr_queue *queue, const tr_error *error) {
    pthread_mutex_lock(&queue->lock);
    break_off(queue, error);
    pthread_mutex_unlock(&queue->lock);
}
