// Signals that come while products run: their handlers find a stack to run on.
#include "backend/cpu/team.h"

#include "base/thread.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIDE = 300, THREADS = 3, SIGNALS = 300, PRODUCTS_MAX = 20000 };

// What is this near to the first frame of the program lies on its stack: main() has set
// it. No other memory is mapped so near.
static const intptr_t near = 4 << 20;
static intptr_t top;

static atomic_int handled, astray;
static atomic_bool done;

static void handle(int number) {
    (void)number;
    intptr_t here = (intptr_t)__builtin_frame_address(0);
    atomic_fetch_add(here < top && top - here < near ? &handled : &astray, 1);
}

static void *send(void *argument) {
    const struct timespec pause = {.tv_nsec = 50000};
    (void)argument;
    while (!atomic_load(&done)) {
        kill(getpid(), SIGUSR1);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static float *filled(float value) {
    float *values = malloc(SIDE * SIDE * sizeof *values);
    assert_non_null(values);
    for (int i = 0; i < SIDE * SIDE; i++) {
        values[i] = value;
    }
    return values;
}

// Products by dnnl_sgemm, whose kernels oneDNN's convolutions run, too, until signals
// enough have come.
static void multiply(char transposed) {
    float *a = filled(2), *b = filled(3), *c = filled(0);
    int until = atomic_load(&handled) + SIGNALS;
    for (int i = 0; i < PRODUCTS_MAX && atomic_load(&handled) < until; i++) {
        tr_held before;
        tr__team_hold(THREADS, &before);
        dnnl_status_t status = dnnl_sgemm(transposed, 'N', SIDE, SIDE, SIDE, 1, a, SIDE,
                                          b, SIDE, 0, c, SIDE);
        tr__team_release(THREADS, &before);
        assert_int_equal(status, dnnl_success);
    }
    assert_true(atomic_load(&handled) >= until);
    assert_int_equal(atomic_load(&astray), 0);
    for (int i = 0; i < SIDE * SIDE; i++) {
        assert_true(c[i] == 6 * SIDE);
    }
    free(a);
    free(b);
    free(c);
}

static void handlers_run_on_the_callers_stack(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = handle}, old;
    pthread_t sender;
#pragma omp parallel num_threads(THREADS) // these were there before, open to signals
    assert_int_equal(omp_get_num_threads(), THREADS);
    int before = tr__team_begin(THREADS);
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    assert_int_equal(tr__thread_start(send, NULL, &sender), 0);
    multiply('N');
    multiply('T');
    atomic_store(&done, true);
    assert_int_equal(pthread_join(sender, NULL), 0);
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
    tr__team_end(before);
}

static int signals_to_others(void) {
    int open = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : open)
    {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        open += omp_get_thread_num() > 0 && !sigismember(&mask, SIGTERM);
    }
    return open;
}

static void *begin_a_team(void *argument) {
    sigset_t none;
    sigemptyset(&none);
    tr__signals_release(&none);
    int open = signals_to_others();
    int before = tr__team_begin(THREADS);
    int still_open = signals_to_others();
    tr__team_end(before);
    return open == THREADS - 1 && still_open == 0 ? argument : NULL;
}

static void old_versions_move_the_stack(void **state) {
    (void)state;
    assert_true(tr__dnnl_moves_stack(2, 6, 3));
    assert_true(tr__dnnl_moves_stack(3, 7, 1));
    assert_true(tr__dnnl_moves_stack(3, 11, 1));
    assert_false(tr__dnnl_moves_stack(3, 11, 2));
    assert_false(tr__dnnl_moves_stack(3, 12, 0));
    assert_false(tr__dnnl_moves_stack(4, 0, 0));
}

static void a_team_is_the_callers(void **state) {
    (void)state;
    int threads = omp_get_max_threads();
    for (int i = 0; i < 2; i++) { // each thread has threads of its own
        pthread_t caller;
        void *result = NULL;
        assert_int_equal(pthread_create(&caller, NULL, begin_a_team, &threads), 0);
        assert_int_equal(pthread_join(caller, &result), 0);
        assert_ptr_equal(result, &threads);
    }
    int before = tr__team_begin(threads + 1);
    assert_int_equal(omp_get_max_threads(), threads + 1);
    tr__team_end(before);
    assert_int_equal(omp_get_max_threads(), threads);
}

// A region of the caller's own, between two teams, ends some threads: those that come
// in their place are new.
static void later_threads_get_none_either(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        int before = tr__team_begin(THREADS);
        assert_int_equal(signals_to_others(), 0);
        tr__team_end(before);
#pragma omp parallel num_threads(THREADS - 1)
        assert_int_equal(omp_get_num_threads(), THREADS - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_run_on_the_callers_stack),
        cmocka_unit_test(old_versions_move_the_stack),
        cmocka_unit_test(a_team_is_the_callers),
        cmocka_unit_test(later_threads_get_none_either),
    };
    top = (intptr_t)__builtin_frame_address(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
