#include "base/thread.h"

#include <time.h>

void tr__signals_hold(sigset_t *before) {
    static const int own[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                              SIGTRAP, SIGABRT, SIGSYS};
    sigset_t others;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        sigdelset(&others, own[i]);
    }
    pthread_sigmask(SIG_BLOCK, &others, before);
}

void tr__signals_release(const sigset_t *before) {
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

int tr__thread_start(void *(*run)(void *argument), void *argument, pthread_t *thread) {
    sigset_t before;
    tr__signals_hold(&before);
    int result = pthread_create(thread, NULL, run, argument);
    tr__signals_release(&before);
    return result;
}

bool tr__thread_join_within(pthread_t thread, int seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

void tr__condition_init(pthread_cond_t *condition) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
