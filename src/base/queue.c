#include "base/queue.h"

#include "base/clock.h"
#include "base/pace.h"
#include "base/thread.h"

#include <string.h>

void tr__queue_init(tr_queue *queue, const tr_queue_options *options) {
    pthread_mutex_init(&queue->lock, NULL);
    tr__condition_init(&queue->more);
    tr__condition_init(&queue->done);
    queue->options = *options;
    atomic_init(&queue->broken, false);
}

void tr__queue_destroy(tr_queue *queue) {
    pthread_cond_destroy(&queue->done);
    pthread_cond_destroy(&queue->more);
    pthread_mutex_destroy(&queue->lock);
}

static void break_off(tr_queue *queue, const tr_error *error) {
    if (!atomic_load(&queue->broken)) {
        queue->error = *error;
        atomic_store(&queue->broken, true);
    }
    queue->finished = queue->started;
    pthread_cond_broadcast(&queue->done);
}

static void *place_of(const tr_queue *queue, int64_t number) {
    const tr_queue_options *options = &queue->options;
    return (char *)options->ring + (size_t)(number % options->capacity) * options->size;
}

// Somebody needs the tasks up to this ticket. Under the lock.
static void await(tr_queue *queue, int64_t ticket) {
    if (ticket > queue->awaited) {
        queue->awaited = ticket;
        pthread_cond_signal(&queue->more);
    }
}

// ---- the caller's side

// Waits a while for `done`. *still: how often in a row the thread had not moved.
static void wait_done(tr_queue *queue, int *still, int64_t *seen) {
    if (queue->options.patience == 0) {
        pthread_cond_wait(&queue->done, &queue->lock);
        return;
    }
    struct timespec until = tr__clock_after(1);
    if (pthread_cond_timedwait(&queue->done, &queue->lock, &until) == 0) {
        return;
    }
    int64_t alive = atomic_load(&queue->alive);
    *still = alive == *seen ? *still + 1 : 0;
    *seen = alive;
    if (*still == queue->options.patience) {
        tr_error error = {0};
        tr_fail(&error, queue->options.hung_status, "%s for %d s",
                queue->options.hung_message, queue->options.patience);
        break_off(queue, &error);
    }
}

int64_t tr__queue_put(tr_queue *queue, const void *task) {
    int still = 0;
    int64_t seen = -1;
    pthread_mutex_lock(&queue->lock);
    while (queue->started - queue->finished == queue->options.capacity &&
           !atomic_load(&queue->broken)) {
        await(queue, queue->finished + 1);
        wait_done(queue, &still, &seen);
    }
    int64_t ticket = queue->started + 1;
    if (!atomic_load(&queue->broken)) { // else nobody will look at it
        memcpy(place_of(queue, queue->started), task, queue->options.size);
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
    await(queue, ticket);
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

void tr__queue_watch(tr_queue *queue, tr_task_span *spans, int64_t count) {
    pthread_mutex_lock(&queue->lock);
    queue->watch = spans;
    queue->watch_from = queue->started;
    queue->watch_count = count;
    pthread_mutex_unlock(&queue->lock);
}

// ---- the thread's side

// The note on task `number`, from 0; NULL: nobody watches it. Under the lock.
static tr_task_span *note_on(const tr_queue *queue, int64_t number) {
    int64_t at = number - queue->watch_from;
    return queue->watch && at >= 0 && at < queue->watch_count ? &queue->watch[at]
                                                              : NULL;
}

// Is task `number`, from 0, there, and may it begin? Under the lock.
static bool is_ready(const tr_queue *queue, int64_t number) {
    return number < queue->started &&
           (queue->options.counted_on || tr__pace_begins(number + 1, queue->awaited));
}

bool tr__queue_next(tr_queue *queue, int64_t behind, void *task) {
    pthread_mutex_lock(&queue->lock);
    int64_t number = queue->finished + behind;
    bool present = is_ready(queue, number);
    if (present) {
        memcpy(task, place_of(queue, number), queue->options.size);
    }
    tr_task_span *note = present ? note_on(queue, number) : NULL;
    if (note) {
        note->begin = tr__seconds();
    }
    pthread_mutex_unlock(&queue->lock);
    return present;
}

void tr__queue_finish(tr_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    tr_task_span *note = note_on(queue, queue->finished);
    if (note) {
        note->end = tr__seconds();
    }
    queue->finished += queue->finished < queue->started;
    pthread_cond_broadcast(&queue->done); // the caller, and who follows its tasks
    pthread_mutex_unlock(&queue->lock);
}

void tr__queue_live(tr_queue *queue) {
    atomic_fetch_add_explicit(&queue->alive, 1, memory_order_relaxed);
}

void tr__queue_rest(tr_queue *queue, double seconds) {
    struct timespec until = tr__clock_after(seconds);
    int result = 0;
    pthread_mutex_lock(&queue->lock);
    while (!is_ready(queue, queue->finished) && !queue->poked && result == 0) {
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
