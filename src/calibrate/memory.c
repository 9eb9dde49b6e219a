// Memory, cache, and what a launch costs.
#include "backend/backend.h"
#include "base/parallel.h"
#include "calibrate/measure.h"
#include "ops/adam/adam.h"
#include "ops/update/update.h"

#include <string.h>

enum { STATE_ELEMENTS = 1 << 24, FIRST_COPY = 1 << 17, LAST_COPY = 1 << 26 };

static const double clearly = 1.5; // times as fast as memory

// ---- the update

typedef struct update_work {
    tr_op_desc desc;
    const tr_kernel *kernel;
    tr_launch launch;
} update_work;

static void update(void *what) {
    const update_work *w = what;
    w->kernel->launch(&w->desc, NULL, &w->launch);
}

// Adam's update: four arrays are read and three of them written. Bytes a second.
static double update_rate(tr_measuring *m, tr_arena *arena, int64_t count) {
    enum { ADAM_STATES = 2, ARRAYS = 2 + ADAM_STATES };
    size_t bytes = (size_t)count * sizeof(float);
    // What is measured is the time: Adam's own numbers may all be zero.
    const tr_hyper hyper = {.lr = 1e-3, .beta1 = .9, .beta2 = .999};
    const tr_update_range range = {.count = count};
    const double power[1][2] = {{.9, .999}};
    const tr_update_order order = {.optimizer = &tr__optimizer_adam,
                                   .ranges = &range,
                                   .range_count = 1,
                                   .hyper = &hyper,
                                   .grad_scale = 1,
                                   .number = 1,
                                   .power = power};
    const tr_run_context run = {.update = &order};
    const tr_tensor_desc array = {TR_F32, TR_SHAPE1(count)};
    update_work w = {.desc = {.op = &tr__op_update,
                              .in_count = 1,
                              .out_count = TR_UPDATE_STATE + ADAM_STATES,
                              .in = {array},
                              .out = {array, [TR_UPDATE_STATE] = array,
                                      [TR_UPDATE_STATE + 1] = array},
                              .target = m->plans[0]->target},
                     .launch = {.in = {tr__arena_view(arena, bytes, bytes)},
                                .out = {tr__arena_view(arena, 0, bytes)},
                                .run = &run}};
    for (int i = 0; i < ADAM_STATES; i++) {
        w.launch.out[TR_UPDATE_STATE + i] =
            tr__arena_view(arena, (size_t)(2 + i) * bytes, bytes);
    }
    w.kernel = tr__kernel_find(&w.desc);
    return (2 * ARRAYS - 1) * (double)bytes / tr__measure(update, &w);
}

// ---- the cache

typedef struct copy_work {
    char *from, *to;
    size_t bytes; // of each thread
} copy_work;

static void copy_part(void *what, int part, int parts) {
    const copy_work *w = what;
    size_t at = (size_t)part * w->bytes;
    (void)parts;
    memcpy(w->to + at, w->from + at, w->bytes);
}

static void copy(void *what) {
    tr__parallel_parts(tr__parallel_threads(), copy_part, what);
}

// Copies of larger and larger blocks: the cache is as large as the last two blocks that
// were copied clearly faster than memory goes.
static void find_cache(tr_machine *machine, tr_arena *arena) {
    size_t threads = (size_t)tr__parallel_threads(), room = tr__arena_bytes(arena);
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

static void set_first(void *what, int part, int parts) {
    volatile int *sink = what;
    (void)parts;
    if (part == 0) {
        *sink = 1;
    }
}

static void nothing(void *what) {
    tr__parallel_parts(tr__parallel_threads(), set_first, what);
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
