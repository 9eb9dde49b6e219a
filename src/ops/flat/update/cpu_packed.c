// Updates whose states are kept in other types than f32: a block of elements at a time,
// while it is in the cache.
#include "ops/flat/update/cpu_packed.h"
#include "backend/cpu/parallel.h"
#include "base/checked.h"
#include "ops/flat/packed_state/packed_state.h"

#include <omp.h>

// One element costs as much as this many moved ones.
enum { WEIGHT = 16 };

typedef struct packed_update {
    const tr_state_kernel *packs;
    tr_update_kernel *kernel;
    const tr_hyper *hyper;
    const tr_update *update;
    int states;
    tr_state_codes codes[2]; // of values with signs, and without
} packed_update;

static const tr_state_codes *codes_of(const packed_update *u, int s) {
    return &u->codes[u->update->type[s] == TR_STATE_U8];
}

static unsigned char *state_at(const packed_update *u, int s, int64_t element) {
    tr_block_size packing = tr__state_format(u->update->type[s])->packing;
    return (unsigned char *)u->update->state[s] + tr__packed_bytes(packing, element);
}

// Elements [first, first + count) of the update, at most TR_STATE_BLOCK.
static void update_block(const packed_update *u, int64_t first, int64_t count) {
    float values[TR_OPTIMIZER_STATES][TR_STATE_BLOCK];
    tr_update part = *u->update;
    part.param += first;
    part.grad += first;
    part.count = count;
    for (int s = 0; s < u->states; s++) {
        tr__state_unpack(u->packs, part.type[s], codes_of(u, s), state_at(u, s, first),
                         count, values[s]);
        part.state[s] = values[s];
    }
    u->kernel(u->hyper, &part);
    for (int s = 0; s < u->states; s++) {
        tr__state_pack(u->packs, part.type[s], codes_of(u, s), values[s], count, false,
                       state_at(u, s, first));
    }
}

void tr__update_packed(tr_update_kernel *kernel, int level, const tr_hyper *hyper,
                       const tr_update *update) {
    packed_update u = {.packs = tr__state_kernel(level),
                       .kernel = kernel,
                       .hyper = hyper,
                       .update = update};
    while (u.states < TR_OPTIMIZER_STATES && update->state[u.states]) {
        u.states++;
    }
    tr__state_codes(TR_STATE_I8, &u.codes[0]);
    tr__state_codes(TR_STATE_U8, &u.codes[1]);
    int threads = tr__threads_for(update->count, WEIGHT, omp_get_max_threads());
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range range = tr__range_part(update->count, TR_STATE_BLOCK, t, threads);
        for (int64_t i = range.begin; i < range.end; i += TR_STATE_BLOCK) {
            update_block(&u, i, tr__min_i64(range.end - i, TR_STATE_BLOCK));
        }
    }
}
