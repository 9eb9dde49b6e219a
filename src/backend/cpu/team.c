#include "backend/cpu/team.h"

#include "base/thread.h"

#include <omp.h>

// OpenMP keeps the threads of a calling thread as long as its regions are of one size:
// so many of this one's get no signals, and need not be woken to be told again.
static _Thread_local int quiet = 1;

static void hold_signals(void) {
#pragma omp parallel
    if (omp_get_thread_num() > 0) {
        tr__signals_hold(NULL);
    }
}

int tr__team_begin(int threads) {
    int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    if (threads > 1 && threads != quiet) {
        hold_signals();
        quiet = threads;
    }
    return before;
}

void tr__team_end(int before) {
    omp_set_num_threads(before);
}
