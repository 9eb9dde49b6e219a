// Memory, cache, and what a launch costs.
#include "calibrate/measure.h"
#include "ops/adam/adam.h"

#include <omp.h>
#include <string.h>

enum { STATE_ELEMENTS = 1 << 24, FIRST_COPY = 1 << 17, LAST_COPY = 1 << 26 };

static const double clearly = 1.5; // times as fast as memory

// ---- the update
// ----------------------------------------------------------------------

typedef struct update_work {
    tr_update_function update;
    tr_update arguments;
} update_work;

static void update(void *what) {
    const update_work *w = what;
    // What is measured is the time: Adam's own numbers may all be zero.
    tr_hyper hyper = {.lr = 1e-3, .beta1 = .9, .beta2 = .999};
    w->update(&hyper, &w->arguments);
}

// Adam's update: four arrays are read and three of them written. Bytes a second.
static double update_rate(tr_measuring *m, tr_arena *arena, int64_t count) {
    size_t bytes = (size_t)count * sizeof(float);
    int level = m->plans[0]->target.level;
    update_work w = {.update = tr__optimizer_choose(&tr__optimizer_adam, level),
                     .arguments = {.param = tr__arena_view(arena, 0, bytes),
                                   .grad = tr__arena_view(arena, bytes, bytes),
                                   .state = {tr__arena_view(arena, 2 * bytes, bytes),
                                             tr__arena_view(arena, 3 * bytes, bytes)},
                                   .count = count,
                                   .grad_scale = 1,
                                   .number = 1,
                                   .beta1_power = .9,
                                   .beta2_power = .999}};
    return 7 * (double)bytes / tr__measure(update, &w);
}

// ---- the cache
// -----------------------------------------------------------------------

typedef struct copy_work {
    char *from, *to;
    size_t bytes; // of each thread
} copy_work;

static void copy(void *what) {
    const copy_work *w = what;
#pragma omp parallel
    {
        size_t at = (size_t)omp_get_thread_num() * w->bytes;
        memcpy(w->to + at, w->from + at, w->bytes);
    }
}

// Copies of larger and larger blocks: the cache is as large as the last two blocks that
// were copied clearly faster than memory goes.
static void find_cache(tr_machine *machine, tr_arena *arena) {
    size_t threads = (size_t)omp_get_max_threads(), room = tr__arena_bytes(arena);
    for (size_t each = FIRST_COPY / threads; each * threads <= LAST_COPY; each *= 2) {
        size_t bytes = each * threads;
        if (each == 0 || 2 * bytes > room) {
            break;
        }
        copy_work w = {tr__arena_view(arena, 0, bytes),
                       tr__arena_view(arena, bytes, bytes), each};
        double rate = 2 * (double)bytes / tr__measure(copy, &w);
        if (rate < clearly * machine->memory_rate) {
            break;
        }
        machine->cache_bytes = 2 * (double)bytes;
        machine->cache_rate = rate;
    }
}

// ---- a launch
// ------------------------------------------------------------------------

static void nothing(void *what) {
    volatile int *sink = what;
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0) {
            *sink = 1;
        }
    }
}

tr_status tr__measure_memory(tr_measuring *m) {
    int64_t count = m->memory / 4 / (int64_t)sizeof(float), any;
    tr_error mine = {0};
    tr_arena *arena = NULL;
    int sink = 0;
    count = count < STATE_ELEMENTS ? count : STATE_ELEMENTS;
    size_t bytes = 4 * (size_t)count * sizeof(float);
    tr_status status = tr__arena_create("states", bytes, &arena, &mine);
    status = tr__agree(m->comm, status, &mine, m->err);
    if (status == TR_OK) {
        tr__measure_fill(arena, bytes);
        status = tr__measure_together(m, 0, &any);
    }
    if (status == TR_OK) {
        m->machine->launch = tr__measure(nothing, &sink);
        m->machine->memory_rate = update_rate(m, arena, count);
        m->machine->host_rate =
            m->machine->memory_rate * (double)m->machine->ranks_per_node;
        m->machine->host_is_device = true;
        find_cache(m->machine, arena);
    }
    tr__arena_destroy(arena);
    return status;
}
