// Memory, cache, and what a launch costs.
#include "machine.h"
#include "ops/optimizer.h"

#include <omp.h>
#include <string.h>

enum { STATE_ELEMENTS = 1 << 24, FIRST_COPY = 1 << 17 };
#define CLEARLY 1.5

typedef struct update_work {
    tr_update_function update;
    tr_update arguments;
} update_work;

static void update(void *what) {
    const update_work *w = what;
    tr_hyper hyper = {.lr = 1e-3, .beta1 = .9, .beta2 = .999, .eps = 1e-8};
    w->update(&hyper, &w->arguments);
}

// Adam's update: four arrays are read and three of them written.
double bench_memory(const bench *b) {
    tr_error err = {0};
    tr_arena *arena = NULL;
    size_t bytes = STATE_ELEMENTS * sizeof(float);
    bench_check(tr__arena_create("memory", 4 * bytes, &arena, &err), &err);
    update_work w = {.update = tr__optimizer_choose(&tr__optimizer_adam, b->plan->isa),
                     .arguments = {.param = tr__arena_view(arena, 0, bytes),
                                   .grad = tr__arena_view(arena, bytes, bytes),
                                   .state = {tr__arena_view(arena, 2 * bytes, bytes),
                                             tr__arena_view(arena, 3 * bytes, bytes)},
                                   .count = STATE_ELEMENTS,
                                   .grad_scale = 1,
                                   .number = 1,
                                   .beta1_power = .9,
                                   .beta2_power = .999}};
    bench_fill(arena, 4 * bytes);
    bench_together(b);
    double rate = 7 * (double)bytes / bench_median(update, &w);
    tr__arena_destroy(arena);
    return rate;
}

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
bench_cached bench_cache(bench *b, double memory_rate) {
    size_t threads = (size_t)omp_get_max_threads();
    bench_cached found = {0, 0};
    for (size_t each = FIRST_COPY / threads; 2 * each * threads <= b->cold_bytes;
         each *= 2) {
        size_t bytes = each * threads;
        copy_work w = {tr__arena_view(b->cold, 0, bytes),
                       tr__arena_view(b->cold, bytes, bytes), each};
        bench_together(b);
        double rate = 2 * (double)bytes / bench_median(copy, &w);
        if (rate < CLEARLY * memory_rate) {
            break;
        }
        found = (bench_cached){2 * bytes, rate};
    }
    return found;
}

static void nothing(void *what) {
    volatile int *sink = what;
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0) {
            *sink = 1;
        }
    }
}

double bench_empty_launch(void) {
    int sink = 0;
    return bench_median(nothing, &sink);
}
