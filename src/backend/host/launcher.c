#include "backend/host/launcher.h"

#include "backend/cpu/team.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/thread.h"

#include <semaphore.h>
#include <string.h>

enum { QUEUE = 256 }; // so many tasks may wait

static const double rest = 10; // seconds; a new task ends it

struct tr_launcher {
    tr_launcher_options options;
    tr_queue queue;
    void *ring; // the queue's
    void *task; // the thread's: what is under way
    pthread_t thread;
    sem_t begun; // the thread has its team
    atomic_bool stop;
    int64_t newest; // ticket; the caller's
};

static void run(tr_launcher *l) {
    tr_error error = {0};
    if (l->options.run(l->options.user, l->task, &error) != TR_OK) {
        tr__queue_break(&l->queue, &error);
    }
}

static void *work(void *launcher) {
    tr_launcher *l = launcher;
    tr__team_begin(l->options.threads);
    sem_post(&l->begun);
    while (!atomic_load(&l->stop)) {
        if (tr__queue_next(&l->queue, 0, l->task)) {
            run(l);
            tr__queue_finish(&l->queue);
        } else {
            tr__queue_rest(&l->queue, rest);
        }
    }
    return NULL;
}

static void free_launcher(tr_launcher *l) {
    tr__queue_destroy(&l->queue);
    sem_destroy(&l->begun);
    tr__free(l->ring);
    tr__free(l->task);
    tr__free(l);
}

// Its threads start now, and not in the middle of a step.
static void wait_for_team(tr_launcher *l) {
    while (sem_wait(&l->begun) != 0) { // a signal came
    }
}

tr_status tr__launcher_create(const tr_launcher_options *options, tr_launcher **out,
                              tr_error *err) {
    tr_launcher *l = tr__calloc(1, sizeof *l);
    void *ring = tr__calloc(QUEUE, options->task_bytes);
    void *task = tr__calloc(1, options->task_bytes);
    *out = NULL;
    if (!l || !ring || !task) {
        tr__free(ring);
        tr__free(task);
        tr__free(l);
        return tr_fail(err, TR_MEMORY, "no memory for the host's compute stream");
    }
    *l = (tr_launcher){.options = *options, .ring = ring, .task = task};
    tr__queue_init(&l->queue, &(tr_queue_options){.ring = ring,
                                                  .size = options->task_bytes,
                                                  .capacity = QUEUE});
    sem_init(&l->begun, 0, 0);
    int result = tr__thread_start(work, l, &l->thread);
    if (result != 0) {
        free_launcher(l);
        return tr_fail(err, TR_INTERNAL,
                       "cannot start the thread of the host's compute stream: %s",
                       strerror(result));
    }
    wait_for_team(l);
    *out = l;
    return TR_OK;
}

void tr__launcher_destroy(tr_launcher *launcher) {
    if (launcher) {
        atomic_store(&launcher->stop, true);
        tr__queue_poke(&launcher->queue);
        pthread_join(launcher->thread, NULL);
        free_launcher(launcher);
    }
}

int64_t tr__launcher_start(tr_launcher *launcher, const void *task) {
    launcher->newest = tr__queue_put(&launcher->queue, task);
    return launcher->newest;
}

tr_status tr__launcher_wait(tr_launcher *launcher, int64_t ticket, tr_error *err) {
    ticket = tr__min_i64(ticket, launcher->newest); // no later one would ever be done
    return tr__queue_wait(&launcher->queue, ticket, err);
}

int64_t tr__launcher_newest(const tr_launcher *launcher) {
    return launcher->newest;
}

void tr__launcher_watch(tr_launcher *launcher, tr_task_span *spans, int64_t count) {
    tr__queue_watch(&launcher->queue, spans, count);
}
