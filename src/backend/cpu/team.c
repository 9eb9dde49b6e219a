#include "backend/cpu/team.h"

#include "base/thread.h"

#include <omp.h>

// Each time: a smaller region of the caller's own in between ends some threads, and
// those that come in their place get signals again.
static void hold_signals(void) {
#pragma omp parallel
    if (omp_get_thread_num() > 0) {
        tr__signals_hold(NULL);
    }
}

int tr__team_begin(int threads) {
    int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    if (threads > 1) {
        hold_signals();
    }
    return before;
}

void tr__team_end(int before) {
    omp_set_num_threads(before);
}

void tr__team_hold(int threads, tr_held *before) {
    before->threads = omp_get_max_threads();
    if (before->threads != threads) {
        omp_set_num_threads(threads);
    }
    tr__signals_hold(&before->signals);
}

void tr__team_release(int threads, const tr_held *before) {
    tr__signals_release(&before->signals);
    if (before->threads != threads) {
        omp_set_num_threads(before->threads);
    }
}
