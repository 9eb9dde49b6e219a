// The guard's queues: a thread each, which launches the CPU's kernels on the memory
// that the host cannot touch. Their tasks begin as base/pace.h lets them.
#include "backend/cpu/team.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "guard/guard.h"

#include <semaphore.h>
#include <string.h>

enum { CAPACITY = 256, MARKS = 1 << 14 };

typedef enum task_kind { LAUNCH, COPY, POISON, FOLLOW, MARK } task_kind;

typedef struct task {
    task_kind kind;
    tr_device_work work;
    tr_op_desc desc;
    tr_launch launch;
    tr_run_context run;
    const void *from;
    void *to;
    size_t bytes;
    tr_device_queue *other;
    int64_t ticket; // of the other's tasks
} task;

struct tr_device_queue {
    tr_queue queue;
    task ring[CAPACITY];
    task now; // the thread's
    pthread_t thread;
    sem_t begun; // the thread has its team
    atomic_bool stop;
    int workers;
    int64_t copied;         // the caller's: bytes
    int64_t tasks, marks;   // the caller's: how many so far
    int64_t task_of[MARKS]; // the ticket of a mark's task, by mark % MARKS
    pthread_mutex_t lock;   // of what follows
    tr_task_span *spans;    // of marks after `from`
    int64_t from, count;
    int64_t marked; // the thread's: how many so far
    double begin;   // of the step that is at work; 0: none is
};

// ---- the thread

static tr_status launch(tr_device_queue *q, task *t, tr_error *err) {
    tr_status failed = TR_OK;
    (void)q;
    t->launch.run = t->launch.run ? &t->run : NULL;
    t->launch.failed = &failed;
    test_guard_launch(t->work.kernel, &t->desc, t->work.state, &t->launch);
    return failed == TR_OK ? TR_OK
                           : tr__backend_fail_launch(failed, t->work.subject, err);
}

static void note_step(tr_device_queue *q) {
    pthread_mutex_lock(&q->lock);
    int64_t at = q->marked++ - q->from;
    if (q->spans && at >= 0 && at < q->count) {
        q->spans[at] = (tr_task_span){q->begin, tr__seconds()};
    }
    q->begin = 0;
    pthread_mutex_unlock(&q->lock);
}

static tr_status run(tr_device_queue *q, task *t, tr_error *err) {
    q->begin = q->begin > 0 ? q->begin : tr__seconds();
    switch (t->kind) {
    case LAUNCH:
        return launch(q, t, err);
    case COPY:
        memcpy(test_guard_reach(t->to), test_guard_reach((void *)t->from), t->bytes);
        return TR_OK;
    case POISON:
        memset(test_guard_reach(t->to), 0xFF, t->bytes); // NaN in every float type
        return TR_OK;
    case FOLLOW:
        return tr__queue_wait(&t->other->queue, t->ticket, err);
    default:
        note_step(q);
        return TR_OK;
    }
}

static void *work(void *queue) {
    tr_device_queue *q = queue;
    tr__team_begin(q->workers);
    sem_post(&q->begun);
    while (!atomic_load(&q->stop)) {
        tr_error error = {0};
        if (!tr__queue_next(&q->queue, 0, &q->now)) {
            tr__queue_rest(&q->queue, 10);
            continue;
        }
        if (run(q, &q->now, &error) != TR_OK) {
            tr__queue_break(&q->queue, &error);
        }
        tr__queue_finish(&q->queue);
    }
    return NULL;
}

// ---- the caller

static void destroy(tr_device_queue *q) {
    if (q) {
        atomic_store(&q->stop, true);
        tr__queue_poke(&q->queue);
        pthread_join(q->thread, NULL);
        tr__queue_destroy(&q->queue);
        pthread_mutex_destroy(&q->lock);
        sem_destroy(&q->begun);
        tr__free(q);
    }
}

static tr_status create(int workers, tr_device_queue **out, tr_error *err) {
    tr_device_queue *q = tr__calloc(1, sizeof *q);
    *out = NULL;
    if (!q) {
        return tr_fail(err, TR_MEMORY, "no memory for a queue");
    }
    q->workers = workers;
    pthread_mutex_init(&q->lock, NULL);
    tr__queue_init(&q->queue, &(tr_queue_options){.ring = q->ring,
                                                  .size = sizeof *q->ring,
                                                  .capacity = CAPACITY});
    sem_init(&q->begun, 0, 0);
    if (tr__thread_start(work, q, &q->thread) != 0) {
        tr__queue_destroy(&q->queue);
        pthread_mutex_destroy(&q->lock);
        tr__free(q);
        return tr_fail(err, TR_INTERNAL, "cannot start a queue's thread");
    }
    while (sem_wait(&q->begun) != 0) { // a step starts no threads
    }
    *out = q;
    return TR_OK;
}

static void put(tr_device_queue *q, const task *t) {
    q->tasks = tr__queue_put(&q->queue, t);
}

static void put_launch(tr_device_queue *q, const tr_device_work *w) {
    task t = {.kind = LAUNCH, .work = *w, .desc = *w->desc, .launch = *w->launch};
    if (w->launch->run) {
        t.run = *w->launch->run;
    }
    put(q, &t);
}

static void put_copy(tr_device_queue *q, const void *from, void *to, int64_t bytes) {
    put(q, &(task){.kind = COPY, .from = from, .to = to, .bytes = (size_t)bytes});
    q->copied += bytes;
}

static int64_t put_mark(tr_device_queue *q) {
    put(q, &(task){.kind = MARK});
    q->task_of[++q->marks % MARKS] = q->tasks;
    return q->marks;
}

// That of a step, or of a later one where that is long ago.
static int64_t task_of(const tr_device_queue *q, int64_t ticket) {
    bool old = ticket <= q->marks - MARKS;
    ticket = ticket > q->marks ? q->marks : old ? q->marks - MARKS + 1 : ticket;
    return ticket <= 0 ? 0 : q->task_of[ticket % MARKS];
}

static void put_follow(tr_device_queue *q, tr_device_queue *other, int64_t ticket) {
    put(q, &(task){.kind = FOLLOW, .other = other, .ticket = task_of(other, ticket)});
}

static int64_t newest(const tr_device_queue *q) {
    return q->marks;
}

static int64_t copied(const tr_device_queue *q) {
    return q->copied;
}

static tr_status wait(tr_device_queue *q, int64_t ticket, tr_error *err) {
    return tr__queue_wait(&q->queue, task_of(q, ticket), err);
}

static void watch(tr_device_queue *q, tr_task_span *spans, int64_t count) {
    pthread_mutex_lock(&q->lock);
    q->spans = spans;
    q->from = q->marks;
    q->count = count;
    pthread_mutex_unlock(&q->lock);
}

void test_guard_poison(tr_device_queue *queue, void *address, size_t bytes) {
    if (queue) {
        put(queue, &(task){.kind = POISON, .to = address, .bytes = bytes});
    } else {
        memset(test_guard_reach(address), 0xFF, bytes);
    }
}

const tr_queue_table test_guard_queues = {
    .create = create,
    .destroy = destroy,
    .launch = put_launch,
    .copy = put_copy,
    .follow = put_follow,
    .mark = put_mark,
    .newest = newest,
    .copied = copied,
    .wait = wait,
    .watch = watch,
};
