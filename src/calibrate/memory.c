// Memory, cache, and what a launch costs.
#include "backend/backend.h"
#include "base/parallel.h"
#include "calibrate/measure.h"
#include "ops/flat/update/update.h"
#include "ops/optimizers/adam/adam.h"
#include "plan/flow/request.h"

#include <string.h>

enum { STATE_ELEMENTS = 1 << 24, FIRST_COPY = 1 << 17, LAST_COPY = 1 << 26 };
enum { LAUNCHES = 31 }; // beside the first

static const double clearly = 1.5;       // times as fast as memory
static const double least_launch = 1e-7; // seconds

// ---- the update

enum { ADAM_STATES = 2 };

typedef struct update_work {
    tr_measuring *m; // NULL: of the host
    tr_op_desc desc;
    const tr_kernel *kernel;
    tr_launch launch;
    int times; // before it is waited for
} update_work;

static void update(void *what) {
    const update_work *w = what;
    const tr_device_work work = {w->kernel, &w->desc, NULL, &w->launch, "calibration"};
    if (!w->m) {
        w->kernel->launch(&w->desc, NULL, &w->launch);
        return;
    }
    for (int i = 0; i < w->times; i++) {
        tr__measure_put(w->m, &work);
    }
    tr__measure_settle(w->m, w->m->queue);
}

// Seconds of Adam's update of so many elements, `times` before it is waited for. m: the
// device; NULL: the host, by `target`.
static double update_seconds(tr_measuring *m, tr_target target, tr_arena *arena,
                             int64_t count, int times) {
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
    update_work w = {.m = m,
                     .times = times,
                     .desc = {.op = &tr__op_update,
                              .in_count = 1,
                              .out_count = TR_UPDATE_STATE + ADAM_STATES,
                              .in = {array},
                              .out = {array, [TR_UPDATE_STATE] = array,
                                      [TR_UPDATE_STATE + 1] = array},
                              .target = target},
                     .launch = {.in = {tr__arena_view(arena, bytes, bytes)},
                                .out = {tr__arena_view(arena, 0, bytes)},
                                .run = &run}};
    for (int i = 0; i < ADAM_STATES; i++) {
        w.launch.out[TR_UPDATE_STATE + i] =
            tr__arena_view(arena, (size_t)(2 + i) * bytes, bytes);
    }
    w.kernel = tr__kernel_find(&w.desc);
    return tr__measure(update, &w);
}

// Four arrays are read and three of them written: bytes a second.
static double update_rate(tr_measuring *m, tr_target target, tr_arena *arena,
                          int64_t count) {
    enum { ARRAYS = 2 + ADAM_STATES };
    double seconds = update_seconds(m, target, arena, count, 1);
    return (2 * ARRAYS - 1) * (double)count * sizeof(float) / seconds;
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

// ---- the host's memory, and the device's

static void measure_host(tr_measuring *m, tr_arena *arena, int64_t count) {
    tr_target target = m->plans[0]->target;
    m->machine->launch = m->overhead = tr__measure(nothing, &(int){0});
    m->machine->memory_rate = update_rate(m, target, arena, count);
    m->machine->host_rate =
        m->machine->memory_rate * (double)m->machine->ranks_per_node;
    m->machine->host_is_device = true;
    find_cache(m->machine, arena);
}

// Launches follow one another without being waited for: the least update, once and many
// times, tells what one takes. `host`: memory of the host's own.
static void measure_device(tr_measuring *m, tr_arena *arena, tr_arena *host,
                           int64_t count) {
    tr_target target = m->plans[0]->target;
    tr_target beside = tr__request_host(m->request);
    m->overhead = update_seconds(m, target, arena, 1, 1);
    double many = update_seconds(m, target, arena, 1, 1 + LAUNCHES);
    double more = (many - m->overhead) / LAUNCHES;
    m->machine->launch = more > least_launch ? more : least_launch;
    m->machine->memory_rate = update_rate(m, target, arena, count);
    m->machine->host_rate =
        update_rate(NULL, beside, host, count) * (double)m->machine->ranks_per_node;
}

tr_status tr__measure_memory(tr_measuring *m) {
    int64_t count = m->memory / 4 / (int64_t)sizeof(float), any;
    tr_error mine = {0};
    tr_arena *arena = NULL, *host = NULL;
    count = count < STATE_ELEMENTS ? count : STATE_ELEMENTS;
    size_t bytes = 4 * (size_t)count * sizeof(float);
    tr_status status = tr__measure_take(m, "states", bytes, true, &arena, &mine);
    if (status == TR_OK && m->queue) {
        status = tr__arena_create("states", bytes, &host, &mine);
    }
    status = tr__agree(m->comm, status, &mine, m->err);
    if (status == TR_OK) {
        status = tr__measure_together(m, 0, &any);
    }
    if (status == TR_OK && m->queue) {
        tr__measure_fill(host, bytes);
        measure_device(m, arena, host, count);
    } else if (status == TR_OK) {
        measure_host(m, arena, count);
    }
    tr__arena_destroy(arena);
    tr__arena_destroy(host);
    return status;
}
