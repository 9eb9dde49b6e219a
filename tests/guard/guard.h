// The guard backend: the CPU's kernels as a discrete device would launch them. Programs
// of tests are linked with it a second time, in place of the files that it stands for
// (backend/table.c, base/pace.c).
#ifndef TEST_GUARD_GUARD_H
#define TEST_GUARD_GUARD_H

#include "backend/backend.h"

#include <stdint.h>

// TR_GUARD_SEED of the environment. 0, also where it is not set: all queues are as late
// as the waits let them; others: it is drawn for each task.
uint64_t test_guard_seed(void);
void test_guard_set_seed(uint64_t seed);

// Memory that the host cannot touch (memory.c), and how its kernels are launched.
extern const tr_memory_source test_guard_memory;
void test_guard_launch(const tr_kernel *kernel, const tr_op_desc *desc, void *state,
                       const tr_launch *launch);
void *test_guard_reach(void *address);
void test_guard_poison(tr_device_queue *queue, void *address, size_t bytes);
extern const tr_queue_table test_guard_queues;

#endif
