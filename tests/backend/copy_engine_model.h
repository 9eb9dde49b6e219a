// Random orders for a copy engine, done in the obvious way beside it.
#ifndef TESTS_BACKEND_CARRIER_MODEL_H
#define TESTS_BACKEND_CARRIER_MODEL_H

#include "backend/host/copy_engine.h"

#include <stddef.h>

enum { MODEL_MEMORY = 6 << 20, MODEL_FILE = 8 << 20 }; // bytes

// Zeroed memory on a page; free() it.
void *page_memory(size_t bytes);

uint32_t draw_below(uint64_t *state, uint32_t bound);

// So many orders of every kind (`file`: reads and writes too) over memory and a file
// that is still all zero, then everything must be as if they had been done one by one.
// Every order that is waited for is done, and those before it. memory: [MODEL_MEMORY],
// on a page, zeroed.
void model_check(tr_copy_engine *copy_engine, bool file, int orders, uint64_t seed,
                 char *memory);

#endif
