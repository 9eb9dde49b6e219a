#include "ops/optimizers/cpu_optimizer.h"

#include "backend/cpu/parallel.h"
#include "base/checked.h"
#include "ops/flat/gradient_squares/cpu_squares.h"

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

void tr__optimizer_measure(const tr_optimizer *optimizer, const tr_target *target,
                           const tr_hyper *hyper, const tr_update *update,
                           int64_t first, tr_squares *parts) {
    tr_direct_kernel *direct = tr__optimizer_choose_direct(optimizer, target->level);
    tr_squares_function squares = tr__squares_choose(target->level);
    int64_t count = tr__measure_parts(first, update->count);
    int64_t origin = first / TR_NORM_BLOCK * TR_NORM_BLOCK - first;
    int threads = tr__threads_for(update->count, WEIGHT, target->workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t k = 0; k < count; k++) {
        int64_t begin = origin + k * TR_NORM_BLOCK;
        tr_update part = cut(update, tr__max_i64(begin, 0),
                             tr__min_i64(begin + TR_NORM_BLOCK, update->count));
        float direction[TR_NORM_BLOCK];
        direct(hyper, &part, direction);
        squares(part.param, part.count, 1, &parts[k].param);
        squares(direction, part.count, 1, &parts[k].direction);
    }
}
