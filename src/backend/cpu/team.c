#include "backend/cpu/team.h"

#include "base/thread.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

bool tr__dnnl_moves_stack(int major, int minor, int patch) {
    return major < 3 || (major == 3 && (minor < 11 || (minor == 11 && patch < 2)));
}

// Of the library that runs, which need not be the one that was built with.
static bool moves_stack(void) {
    const dnnl_version_t *v = dnnl_version();
    return tr__dnnl_moves_stack(v->major, v->minor, v->patch);
}

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
    before->holds = moves_stack();
    if (before->holds) {
        tr__signals_hold(&before->signals);
    }
}

void tr__team_release(int threads, const tr_held *before) {
    if (before->holds) {
        tr__signals_release(&before->signals);
    }
    if (before->threads != threads) {
        omp_set_num_threads(before->threads);
    }
}
