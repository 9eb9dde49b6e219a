// Work that is shared among threads, outside of kernels.
#ifndef TR_BASE_PARALLEL_H
#define TR_BASE_PARALLEL_H

#include <stdint.h>

// How many threads work that the calling thread shares: the cores, what OMP_NUM_THREADS
// says, or what the thread itself has set.
int tr__parallel_threads(void);
void tr__parallel_threads_set(int threads);
// Processors of this machine that the process may run on.
int tr__parallel_processors(void);

// Part `part` of `parts` of some work.
typedef void (*tr_part_run)(void *work, int part, int parts);
// Runs all parts at once, each on a thread of its own.
void tr__parallel_parts(int parts, tr_part_run run, void *work);

// Item `item` of some work, on thread `thread` of those that share it.
typedef void (*tr_item_run)(void *work, int64_t item, int thread);
// Runs items 0, 1, ... count - 1, each on whichever of the threads is free.
void tr__parallel_items(int threads, int64_t count, tr_item_run run, void *work);

#endif
