// Labels: threads
// The queue between a caller and a thread.
#include "base/clock.h"
#include "base/queue.h"
#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { CAPACITY = 3, TASKS = 1000 };

typedef struct task {
    int number;
    char more[20];
} task;

typedef struct worker {
    tr_queue queue;
    task ring[CAPACITY];
    pthread_t thread;
    atomic_bool stop, hang;
    int out_of_order;
    bool signals; // does one reach the thread?
    int sum;
} worker;

static void *work(void *argument) {
    worker *w = argument;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    w->signals = !sigismember(&mask, SIGTERM) || !sigismember(&mask, SIGUSR1);
    for (int next = 0; !atomic_load(&w->stop);) {
        task now, later;
        if (atomic_load(&w->hang) || !tr__queue_next(&w->queue, 0, &now)) {
            tr__queue_rest(&w->queue, 1);
            continue;
        }
        w->out_of_order += now.number != next;
        for (int behind = 1; tr__queue_next(&w->queue, behind, &later); behind++) {
            w->out_of_order += later.number != next + behind;
        }
        w->sum += now.number;
        next++;
        tr__queue_live(&w->queue);
        tr__queue_finish(&w->queue);
    }
    return NULL;
}

static void begin(worker *w, int patience) {
    *w = (worker){.sum = 0};
    tr__queue_init(&w->queue, &(tr_queue_options){.ring = w->ring,
                                                  .size = sizeof *w->ring,
                                                  .capacity = CAPACITY,
                                                  .patience = patience,
                                                  .hung_status = TR_COMM,
                                                  .hung_message = "it has slept"});
    assert_int_equal(tr__thread_start(work, w, &w->thread), 0);
}

static void finish(worker *w) {
    atomic_store(&w->stop, true);
    tr__queue_poke(&w->queue);
    pthread_join(w->thread, NULL);
    assert_int_equal(w->out_of_order, 0);
    assert_false(w->signals);
    tr__queue_destroy(&w->queue);
}

static void test_in_order(void **state) {
    (void)state;
    worker w;
    begin(&w, 0);
    for (int i = 0; i < TASKS; i++) {
        task t = {.number = i};
        assert_int_equal(tr__queue_put(&w.queue, &t), i + 1);
        if (i % 100 == 0) {
            assert_int_equal(tr__queue_wait(&w.queue, i + 1, NULL), TR_OK);
            assert_int_equal(w.sum, i * (i + 1) / 2);
        }
    }
    assert_int_equal(tr__queue_wait(&w.queue, TASKS, NULL), TR_OK);
    assert_int_equal(w.sum, TASKS * (TASKS - 1) / 2);
    finish(&w);
}

static void *break_soon(void *argument) {
    worker *w = argument;
    tr_error error = {0}, second = {0};
    tr__sleep(0.02);
    tr_fail(&error, TR_IO, "100%% broken");
    tr_fail(&second, TR_DATA, "too late");
    tr__queue_break(&w->queue, &error);
    tr__queue_break(&w->queue, &second);
    return NULL;
}

// Everybody who waits, or would, goes on with the first error.
static void test_broken(void **state) {
    (void)state;
    worker w;
    pthread_t breaker;
    tr_error err = {0};
    begin(&w, 0);
    atomic_store(&w.hang, true);
    assert_int_equal(tr__thread_start(break_soon, &w, &breaker), 0);
    for (int i = 0; i < 2 * CAPACITY; i++) {
        task t = {.number = i};
        tr__queue_put(&w.queue, &t); // the fourth waits for the end of it
    }
    assert_int_equal(tr__queue_wait(&w.queue, 1, &err), TR_IO);
    assert_string_equal(err.message, "100% broken");
    pthread_join(breaker, NULL);
    finish(&w);
}

static void test_hung(void **state) {
    (void)state;
    worker w;
    tr_error err = {0};
    task t = {.number = 0};
    begin(&w, 1);
    atomic_store(&w.hang, true);
    int64_t ticket = tr__queue_put(&w.queue, &t);
    double before = tr__seconds();
    assert_int_equal(tr__queue_wait(&w.queue, ticket, &err), TR_COMM);
    assert_string_equal(err.message, "it has slept for 1 s");
    assert_true(tr__seconds() - before >= 1);
    finish(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_hung),
    };
    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
