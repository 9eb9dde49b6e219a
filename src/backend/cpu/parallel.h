// How a kernel shares its work between the threads of an OpenMP region.
#ifndef TR_BACKEND_CPU_PARALLEL_H
#define TR_BACKEND_CPU_PARALLEL_H

#include <stdint.h>

// Work worth waking a thread for, in the time of moving one f32 through a core's cache
// (about 0.1 ns): a region costs one to a few microseconds.
enum { TR_GRAIN = 32768 };

// Threads for work worth so many grains: all, or 1 where a parallel region would not
// pay. Nothing in between: GCC's OpenMP ends the threads that a smaller region has no
// use for, and the next larger one has to start them again.
static inline int tr__threads_worth(double grains, int threads) {
    return grains < 2 || grains < threads / 8 ? 1 : threads;
}

// Threads for `count` elements that each cost as much as `weight` moved ones.
static inline int tr__threads_for(int64_t count, int64_t weight, int threads) {
    return tr__threads_worth((double)count * (double)weight / TR_GRAIN, threads);
}

typedef struct tr_range {
    int64_t begin, end;
} tr_range;

// Part `part` of `parts` of some work.
typedef void (*tr_part_function)(const void *work, int part, int parts);

// Every part, each by a thread of its own. A region of one thread asks the kernel to
// wake nobody, all the same: so there is none for one part.
static inline void tr__parts_run(int parts, tr_part_function run, const void *work) {
    if (parts == 1) {
        run(work, 0, 1);
        return;
    }
#pragma omp parallel for num_threads(parts)
    for (int part = 0; part < parts; part++) {
        run(work, part, parts);
    }
}

// Part `part` of `parts` of [0, count), cut at multiples of `unit`. A function of its
// arguments alone. Later parts may be empty.
static inline tr_range tr__range_part(int64_t count, int64_t unit, int part,
                                      int parts) {
    int64_t units = (count + unit - 1) / unit;
    int64_t base = units / parts, more = units % parts;
    int64_t first = part * base + (part < more ? part : more);
    int64_t last = first + base + (part < more);
    tr_range range = {first * unit, last * unit};
    range.begin = range.begin < count ? range.begin : count;
    range.end = range.end < count ? range.end : count;
    return range;
}

#endif
