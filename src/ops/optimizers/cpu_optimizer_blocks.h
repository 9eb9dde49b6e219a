// How the CPU kernels of optimizers walk a range: in blocks of one length, shared
// between threads.
//
// Every element goes through the same compiled loop over TR_UPDATE_BLOCK elements, the
// last of a range through a copy, so that an element's bits do not depend on where a
// range begins or ends.
#ifndef TR_OPS_OPTIMIZERS_CPU_OPTIMIZER_BLOCKS_H
#define TR_OPS_OPTIMIZERS_CPU_OPTIMIZER_BLOCKS_H

#include "backend/cpu/parallel.h"
#include "ops/optimizers/optimizer.h"

#include <omp.h>
#include <string.h>

enum { TR_UPDATE_BLOCK = 64 };

// p, g, state[i]: [TR_UPDATE_BLOCK], the parameters, gradients and as many states as
// are in use; none of them overlap. numbers: what is the same for all elements.
typedef void (*tr_update_block)(const void *numbers, float *restrict p,
                                const float *restrict g, float *const *state);

// Where the states are from element `first` of the range on.
static inline void tr__update_states(const tr_update *update, int states, int64_t first,
                                     float *at[TR_OPTIMIZER_STATES]) {
    for (int i = 0; i < states; i++) {
        at[i] = update->state[i] + first;
    }
}

// The elements [first, first + count), count < TR_UPDATE_BLOCK.
static inline void tr__update_rest(const tr_update *update, int states,
                                   tr_update_block block, const void *numbers,
                                   int64_t first, size_t count) {
    float part[2 + TR_OPTIMIZER_STATES][TR_UPDATE_BLOCK] = {{0}};
    float *state[TR_OPTIMIZER_STATES] = {NULL};
    size_t bytes = count * sizeof(float);
    memcpy(part[0], update->param + first, bytes);
    memcpy(part[1], update->grad + first, bytes);
    for (int i = 0; i < states; i++) {
        state[i] = part[2 + i];
        memcpy(state[i], update->state[i] + first, bytes);
    }
    block(numbers, part[0], part[1], state);
    memcpy(update->param + first, part[0], bytes);
    for (int i = 0; i < states; i++) {
        memcpy(update->state[i] + first, part[2 + i], bytes);
    }
}

static inline void tr__update_part(const tr_update *update, int states,
                                   tr_update_block block, const void *numbers,
                                   tr_range range) {
    int64_t i = range.begin;
    for (; i + TR_UPDATE_BLOCK <= range.end; i += TR_UPDATE_BLOCK) {
        float *state[TR_OPTIMIZER_STATES] = {NULL};
        tr__update_states(update, states, i, state);
        block(numbers, update->param + i, update->grad + i, state);
    }
    if (i < range.end) {
        tr__update_rest(update, states, block, numbers, i, (size_t)(range.end - i));
    }
}

// Updates the whole range with `states` states in use, where one element costs as much
// as `weight` moved ones.
static inline void tr__update_all(const tr_update *update, int states, int weight,
                                  tr_update_block block, const void *numbers) {
    int64_t count = update->count;
    int threads = tr__threads_for(count, weight, omp_get_max_threads());
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr__update_part(update, states, block, numbers,
                        tr__range_part(count, TR_UPDATE_BLOCK, t, threads));
    }
}

// The same of a first phase, on the calling thread: d: [TR_UPDATE_BLOCK], the
// direction.
typedef void (*tr_direct_block)(const void *numbers, const float *restrict p,
                                const float *restrict g, float *const *state,
                                float *restrict d);

static inline void tr__direct_rest(const tr_update *update, int states,
                                   tr_direct_block block, const void *numbers,
                                   int64_t first, size_t count, float *direction) {
    float part[3 + TR_OPTIMIZER_STATES][TR_UPDATE_BLOCK] = {{0}};
    float *state[TR_OPTIMIZER_STATES] = {NULL};
    size_t bytes = count * sizeof(float);
    memcpy(part[0], update->param + first, bytes);
    memcpy(part[1], update->grad + first, bytes);
    for (int i = 0; i < states; i++) {
        state[i] = part[3 + i];
        memcpy(state[i], update->state[i] + first, bytes);
    }
    block(numbers, part[0], part[1], state, part[2]);
    memcpy(direction + first, part[2], bytes);
    for (int i = 0; i < states; i++) {
        memcpy(update->state[i] + first, part[3 + i], bytes);
    }
}

static inline void tr__direct_all(const tr_update *update, int states,
                                  tr_direct_block block, const void *numbers,
                                  float *direction) {
    int64_t i = 0;
    for (; i + TR_UPDATE_BLOCK <= update->count; i += TR_UPDATE_BLOCK) {
        float *state[TR_OPTIMIZER_STATES] = {NULL};
        tr__update_states(update, states, i, state);
        block(numbers, update->param + i, update->grad + i, state, direction + i);
    }
    if (i < update->count) {
        tr__direct_rest(update, states, block, numbers, i, (size_t)(update->count - i),
                        direction);
    }
}

#endif
