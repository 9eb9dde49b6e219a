#include "ops/optimizer_measure.h"

#include "backend/cpu/parallel.h"
#include "base/checked.h"

#include <omp.h>

// One element costs as much as this many moved ones.
enum { WEIGHT = 8 };

// Elements [begin, end) of the range.
static tr_update cut(const tr_update *update, int64_t begin, int64_t end) {
    tr_update part = *update;
    part.param += begin;
    part.grad += begin;
    for (int i = 0; i < TR_OPTIMIZER_STATES; i++) {
        part.state[i] = part.state[i] ? part.state[i] + begin : NULL;
    }
    part.count = end - begin;
    return part;
}

void tr__optimizer_measure(tr_direct_function direct, tr_norm_function norm,
                           const tr_hyper *hyper, const tr_update *update,
                           int64_t first, tr_squares *parts) {
    int64_t count = tr__measure_parts(first, update->count);
    int64_t origin = first / TR_NORM_BLOCK * TR_NORM_BLOCK - first;
    int threads = tr__threads_for(update->count, WEIGHT, omp_get_max_threads());
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t k = 0; k < count; k++) {
        int64_t begin = origin + k * TR_NORM_BLOCK;
        tr_update part = cut(update, tr__max_i64(begin, 0),
                             tr__min_i64(begin + TR_NORM_BLOCK, update->count));
        float direction[TR_NORM_BLOCK];
        direct(hyper, &part, direction);
        norm(part.param, part.count, &parts[k].param);
        norm(direction, part.count, &parts[k].direction);
    }
}
