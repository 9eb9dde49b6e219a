// Tasks of a launcher are done one after the other in the order of starting, beside the
// caller, and are done when somebody has waited for them.
#include "backend/host/launcher.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TASKS = 1000, FAILS = -1 }; // more than are queued at once

typedef struct notes {
    int64_t number[TASKS]; // of the tasks, as they were done; not atomic: waits order
    int64_t count;
    atomic_bool held; // the thread does not go on
} notes;

typedef struct task {
    int64_t number;
} task;

static tr_status note(void *user, const void *given, tr_error *err) {
    notes *n = user;
    const task *t = given;
    while (atomic_load(&n->held)) {
        tr__sleep(1e-3);
    }
    n->number[n->count++] = t->number;
    return t->number == FAILS ? tr_fail(err, TR_MEMORY, "no memory for it") : TR_OK;
}

static tr_launcher *make(notes *n) {
    tr_launcher *launcher = NULL;
    tr_error err = {0};
    tr_launcher_options options = {
        .run = note, .user = n, .task_bytes = sizeof(task), .threads = 1};
    if (tr__launcher_create(&options, &launcher, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return launcher;
}

static int64_t start(tr_launcher *launcher, int64_t number) {
    return tr__launcher_start(launcher, &(task){number});
}

static void wait_for(tr_launcher *launcher, int64_t ticket) {
    tr_error err = {0};
    assert_int_equal(tr__launcher_wait(launcher, ticket, &err), TR_OK);
}

static void tasks_are_done_in_order(void **state) {
    (void)state;
    notes *n = calloc(1, sizeof *n);
    assert_non_null(n);
    tr_launcher *launcher = make(n);
    assert_int_equal(tr__launcher_newest(launcher), 0);
    for (int64_t i = 0; i < TASKS; i++) {
        assert_int_equal(start(launcher, 3 * i), i + 1);
        if (i % 100 == 99) { // what was waited for is there
            wait_for(launcher, i - 50);
            assert_int_equal(n->number[i - 51], 3 * (i - 51));
        }
    }
    wait_for(launcher, tr__launcher_newest(launcher));
    assert_int_equal(n->count, TASKS);
    for (int64_t i = 0; i < TASKS; i++) {
        assert_int_equal(n->number[i], 3 * i);
    }
    tr__launcher_destroy(launcher);
    free(n);
}

// The caller goes on while a task is at work, and its span says when that was.
static void the_caller_goes_on(void **state) {
    (void)state;
    notes *n = calloc(1, sizeof *n);
    assert_non_null(n);
    tr_task_span spans[2] = {{0, 0}, {0, 0}};
    tr_launcher *launcher = make(n);
    atomic_store(&n->held, true);
    tr__launcher_watch(launcher, spans, 2);
    double begin = tr__seconds();
    start(launcher, 1);
    int64_t last = start(launcher, 2);
    tr__sleep(0.02);
    atomic_store(&n->held, false);
    wait_for(launcher, last);
    assert_int_equal(n->count, 2);
    assert_true(spans[0].begin >= begin && spans[0].end >= begin + 0.02);
    assert_true(spans[1].begin >= spans[0].end && spans[1].end >= spans[1].begin);
    wait_for(launcher, last + 5); // no later one is there
    tr__launcher_watch(launcher, NULL, 0);
    tr__launcher_destroy(launcher);
    free(n);
}

// What is under way ends; the rest is dropped.
static void destroying_waits_for_one(void **state) {
    (void)state;
    notes *n = calloc(1, sizeof *n);
    assert_non_null(n);
    tr_launcher *launcher = make(n);
    for (int64_t i = 0; i < 20; i++) {
        start(launcher, i);
    }
    tr__launcher_destroy(launcher);
    assert_true(n->count <= 20);
    tr__launcher_destroy(NULL);
    free(n);
}

// Who waits gets the error, now and later; nothing after the task is done.
static void a_failure_ends_all(void **state) {
    (void)state;
    notes *n = calloc(1, sizeof *n);
    tr_error err = {0};
    assert_non_null(n);
    tr_launcher *launcher = make(n);
    atomic_store(&n->held, true);
    start(launcher, 1);
    start(launcher, FAILS);
    int64_t last = start(launcher, 2);
    atomic_store(&n->held, false);
    assert_int_equal(tr__launcher_wait(launcher, last, &err), TR_MEMORY);
    assert_string_equal(err.message, "no memory for it");
    last = start(launcher, 3);
    assert_int_equal(tr__launcher_wait(launcher, last, &err), TR_MEMORY);
    tr__launcher_destroy(launcher);
    assert_int_equal(n->count, 2);
    free(n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_done_in_order),
        cmocka_unit_test(the_caller_goes_on),
        cmocka_unit_test(destroying_waits_for_one),
        cmocka_unit_test(a_failure_ends_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
