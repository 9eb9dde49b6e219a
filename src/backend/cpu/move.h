// Elements that are moved as they are, for kernel files.
#ifndef TR_BACKEND_CPU_MOVE_H
#define TR_BACKEND_CPU_MOVE_H

#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"

// y = x, or y += x, by up to `workers` threads. x, y: [count]
static inline void tr__move(const tr_real *x, tr_real *y, int64_t count, int workers,
                            bool add) {
    int threads = tr__threads_for(count, 1, workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_VW, t, threads);
        const tr_real *from = x + r.begin;
        tr_v_map2(tr_v_first, from, from, y + r.begin, r.end - r.begin, add);
    }
}

#endif
