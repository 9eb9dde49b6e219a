#include "base/parallel.h"

#include <omp.h>

int tr__parallel_threads(void) {
    return omp_get_max_threads();
}

void tr__parallel_threads_set(int threads) {
    omp_set_num_threads(threads);
}

int tr__parallel_processors(void) {
    return omp_get_num_procs();
}

void tr__parallel_parts(int parts, tr_part_run run, void *work) {
#pragma omp parallel for num_threads(parts)
    for (int part = 0; part < parts; part++) {
        run(work, part, parts);
    }
}

void tr__parallel_items(int threads, int64_t count, tr_item_run run, void *work) {
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t item = 0; item < count; item++) {
        run(work, item, omp_get_thread_num());
    }
}
